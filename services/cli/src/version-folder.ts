// A version as a folder in Hugging Face's layout: its adapter as peft and vLLM load it, or merged into the base model. In: a manifest, whose
// files the blob store holds. Out: a folder that appears whole or not at all.
import { randomUUID } from 'node:crypto';
import { existsSync, readFileSync } from 'node:fs';
import { open, readdir, rename, rm, writeFile } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { asBacktalkError, makeFolder, type BlobStore } from '@backtalk/kit';
import { z } from 'zod';
import type { WeightsManifest } from '@backtalk/proto/weights';
import type { Connection } from './connection.js';
import { cliErrors } from './errors.js';
import { mergeWeights } from './merge-weights.js';

const weightsName = 'adapter_model.safetensors';
const configName = 'adapter_config.json';
/** Says which version a folder holds: after a reset, another one has the same name. */
const recordName = 'backtalk.json';
const record = z.object({ version: z.string(), adapter: z.string(), merged: z.boolean() });
export const beingWritten = '.part';

/** @param name of the option that gives it */
export async function checkNewFolder(given: string, name: string): Promise<string> {
  const folder = resolve(given);
  if (existsSync(folder) && (await readdir(folder)).length > 0)
    throw cliErrors.badArgument({ name, value: folder, wanted: 'a new or empty folder' });
  return folder;
}

export interface VersionSource {
  readonly connection: Connection;
  readonly blobs: BlobStore;
}

/** In a folder that has its name once it is whole. */
export async function writeVersion(
  source: VersionSource,
  manifest: WeightsManifest,
  folder: string,
  merged: boolean,
): Promise<void> {
  const { connection } = source;
  const beside = `${folder}.${randomUUID()}${beingWritten}`;
  try {
    const adapter = merged ? `${beside}.adapter` : beside;
    await writeAdapter(source, manifest, adapter);
    if (merged) {
      await mergeWeights(connection, adapter, beside).finally(() => rm(adapter, { recursive: true, force: true }));
    }
    await writeFile(join(beside, recordName), `${JSON.stringify(recordOf(manifest, merged))}\n`);
    await rm(folder, { recursive: true, force: true });
    await rename(beside, folder);
  } finally {
    await rm(beside, { recursive: true, force: true });
  }
}

/** Names that only this gives: others may keep files of their own in the folder. */
const halfWritten = /\.[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\.part(?:\.adapter)?$/;

export async function removeHalfWritten(folder: string): Promise<void> {
  for (const name of await readdir(folder))
    if (halfWritten.test(name)) await rm(join(folder, name), { recursive: true, force: true });
}

function recordOf({ version, adapter }: WeightsManifest, merged: boolean): z.infer<typeof record> {
  return { version, adapter: adapter.find(({ name }) => name === weightsName)?.digest ?? '', merged };
}

export function holds(folder: string, manifest: WeightsManifest, merged: boolean): boolean {
  try {
    const found = record.parse(JSON.parse(readFileSync(join(folder, recordName), 'utf8')));
    const wanted = recordOf(manifest, merged);
    return found.adapter === wanted.adapter && found.merged === merged;
  } catch {
    return false;
  }
}

async function writeAdapter(
  { connection, blobs }: VersionSource,
  manifest: WeightsManifest,
  folder: string,
): Promise<void> {
  const { version } = manifest;
  await makeFolder(folder);
  for (const name of [weightsName, configName]) {
    const file = manifest.adapter.find((candidate) => candidate.name === name);
    if (file === undefined) throw cliErrors.nothingFound({ what: `${name} of ${version}` });
    const bytes = await blobOf(blobs, file.digest, `${name} of ${version}`);
    const own = name === configName ? naming(bytes, connection.model) : bytes;
    const written = await open(join(folder, name), 'wx');
    try {
      await written.writeFile(own);
      await written.sync();
    } finally {
      await written.close();
    }
  }
}

/** Engines know the base by a name; what loads the folder by itself finds the base by its folder. */
function naming(config: Uint8Array, model: string | undefined): Uint8Array {
  if (model === undefined) return config;
  const fields = JSON.parse(Buffer.from(config).toString('utf8')) as Readonly<Record<string, unknown>>;
  return Buffer.from(`${JSON.stringify({ ...fields, base_model_name_or_path: model }, null, 2)}\n`);
}

export async function blobOf(blobs: BlobStore, digest: string, what: string): Promise<Uint8Array> {
  try {
    return await blobs.get(digest);
  } catch (thrown) {
    if (asBacktalkError(thrown).code !== 'blob_missing') throw thrown;
    throw cliErrors.nothingFound({ what: `${what}: old files are swept (npx backtalk rebuild makes them again)` });
  }
}
