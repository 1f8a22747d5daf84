// `export weights`: a version as a folder in Hugging Face's layout: its adapter as peft and vLLM load it, or merged into the base
// model. In: a version, or with `--follow` each one that comes to answer. Out: a folder that appears whole or not at all; with
// `--follow` one a version, the newest few, and a link to the one that answers. It asks the log and the blob store, never an engine.
import { randomUUID } from 'node:crypto';
import { readdir, rename, rm, symlink } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import {
  FactReader,
  isBaseVersion,
  kvBucket,
  makeFolder,
  systemClock,
  versionParts,
  type BlobStore,
  type Broker,
} from '@backtalk/kit';
import { Routes, WeightsManifest } from '@backtalk/proto/weights';
import { withBroker } from '../connection.js';
import { cliErrors } from '../errors.js';
import type { CommandContext } from '../shell.js';
import {
  beingWritten,
  blobOf,
  checkNewFolder,
  holds,
  removeHalfWritten,
  writeVersion,
  type VersionSource,
} from '../version-folder.js';

export interface WeightsFlags {
  readonly to?: string;
  readonly merged: boolean;
  readonly follow: boolean;
  readonly keep: number;
}

const lookEveryMs = 2_000;

export async function exportWeights(
  context: CommandContext,
  version: string | undefined,
  flags: WeightsFlags,
): Promise<void> {
  if (flags.to === undefined)
    throw cliErrors.badArgument({ name: '--to', value: '', wanted: 'a folder, which weights need' });
  if (flags.follow && version !== undefined)
    throw cliErrors.badArgument({ name: 'version', value: version, wanted: 'usable with --follow, which takes all' });
  if (flags.follow) return followWeights(context, resolve(flags.to), flags);
  const { connection, output } = context;
  const folder = await checkNewFolder(flags.to, '--to');
  await withBroker(connection, async (broker, blobs) => {
    const { policy } = connection;
    const wanted = version ?? (await answering(broker, policy));
    if (wanted === undefined || isBaseVersion(wanted))
      throw cliErrors.nothingFound({ what: 'version that has learned anything: the base model answers' });
    await writeVersion({ connection, blobs }, await manifestOf(broker, blobs, wanted), folder, flags.merged);
    output.value({ version: wanted, folder, merged: flags.merged });
    output.line(`${wanted} is in ${folder}, ${flags.merged ? 'merged into its base model' : 'as an adapter'}.`);
  });
}

async function answering(broker: Broker, policy: string): Promise<string | undefined> {
  const stable = (await kvBucket(broker, 'routes', Routes).get(policy))?.value.stable ?? '';
  return stable === '' ? undefined : stable;
}

async function manifestOf(broker: Broker, blobs: BlobStore, version: string): Promise<WeightsManifest> {
  const policy = versionParts(version)?.policy;
  if (policy === undefined)
    throw cliErrors.badArgument({ name: 'version', value: version, wanted: 'a version, such as backtalk-v3' });
  let digest: string | undefined;
  const filter = { weightsTrained: { policy } };
  for await (const { message } of new FactReader(broker).read(['weightsTrained'], { filter }))
    if (message.version === version) digest = message.manifestDigest;
  if (digest === undefined)
    throw cliErrors.nothingFound({ what: `version ${version} (npx backtalk versions lists them)` });
  return WeightsManifest.decode(await blobOf(blobs, digest, `the manifest of ${version}`));
}

async function followWeights(context: CommandContext, folder: string, flags: WeightsFlags): Promise<void> {
  const { connection, output, signal } = context;
  await makeFolder(folder);
  await removeHalfWritten(folder);
  output.line(`Versions that come to answer are written to ${folder}, the newest ${flags.keep} of each policy.`);
  const followed = new Map<string, string>();
  const policies = connection.isPolicyNamed === true ? [connection.policy] : connection.policies;
  await withBroker(connection, async (broker, blobs) => {
    while (!signal.aborted) {
      for (const policy of policies) {
        const version = await answering(broker, policy);
        const link = join(folder, policies.length === 1 ? 'latest' : `${policy}-latest`);
        if (version === undefined || isBaseVersion(version)) {
          followed.delete(policy);
          await rm(link, { force: true });
        } else
          await keepVersion({ connection, broker, blobs }, { version, policy, folder, link, followed }, context, flags);
      }
      await systemClock.sleep(lookEveryMs, signal).catch(() => undefined);
    }
  });
}

interface Following extends VersionSource {
  readonly broker: Broker;
}

interface Kept {
  readonly version: string;
  readonly policy: string;
  /** All versions'. */
  readonly folder: string;
  readonly link: string;
  /** What the last look found, by policy. */
  readonly followed: Map<string, string>;
}

async function keepVersion(
  source: Following,
  { version, policy, folder, link, followed }: Kept,
  { output }: CommandContext,
  { merged, keep }: WeightsFlags,
): Promise<void> {
  const own = join(folder, version);
  const isNew = followed.get(policy) !== version;
  const manifest = isNew ? await manifestOf(source.broker, source.blobs, version) : undefined;
  if (manifest !== undefined && !holds(own, manifest, merged)) {
    await writeVersion(source, manifest, own, merged);
    output.value({ version, folder: own, merged });
    output.line(`${version} is in ${own}.`);
  }
  if (!isNew) return;
  followed.set(policy, version);
  await pointTo(link, version);
  const numbers = (await readdir(folder)).flatMap((name) => {
    const parts = versionParts(name);
    return parts?.policy === policy ? [parts.number] : [];
  });
  const old = numbers.sort((one, other) => other - one).slice(keep);
  for (const number of old.map((at) => `${policy}-v${at}`))
    if (number !== version) await rm(join(folder, number), { recursive: true, force: true });
}

/** At every moment it names the version before or this one. */
async function pointTo(link: string, version: string): Promise<void> {
  const beside = `${link}.${randomUUID()}${beingWritten}`;
  await symlink(version, beside);
  await rename(beside, link);
}
