// Brings the files of a version from the blob store to the engine's disk. In: a version and its manifest's digest. Out: a
// folder with the adapter, checked byte by byte and tensor by tensor, that appears whole or not at all. What is on the disk is not
// asked of the store again, which may be away when a loader starts anew beside an engine that holds the version.
import { randomUUID } from 'node:crypto';
import { mkdir, open, readdir, readFile, rename, rm } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { asBacktalkError, sha256Hex, type BlobStore } from '@backtalk/kit';
import { WeightsManifest, type WeightsFile } from '@backtalk/proto/weights';
import { adapterMisfit, type BaseShape } from '../domain/adapter-shape.js';
import { parseObject, readSafetensors } from '../domain/safetensors.js';
import { loaderErrors } from '../errors.js';

const weightsName = 'adapter_model.safetensors';
const configName = 'adapter_config.json';
const manifestName = 'manifest';
const beingWritten = '.part';
const digestEnd = /^-[0-9a-f]{16}$/;

export interface WantedVersion {
  readonly policy: string;
  readonly version: string;
  readonly manifestDigest: string;
}

export class WeightsFiles {
  private readonly directory: string;

  constructor(
    private readonly blobs: BlobStore,
    directory: string,
    private readonly base: BaseShape | undefined,
  ) {
    // Engines resolve a relative path from their own working directory.
    this.directory = resolve(directory);
  }

  /** Removes what an earlier process left half written. */
  async start(): Promise<void> {
    await mkdir(this.directory, { recursive: true });
    for (const name of await readdir(this.directory))
      if (name.endsWith(beingWritten)) await rm(join(this.directory, name), { recursive: true, force: true });
  }

  /** Returns the folder. */
  async fetch(wanted: WantedVersion, baseModel: string): Promise<string> {
    const { manifest, bytes } = await this.manifestOf(wanted, baseModel);
    const weights = await this.file(wanted, manifest.adapter, weightsName);
    const config = await this.file(wanted, manifest.adapter, configName);
    const { version, loraRank: rank, loraAlpha: alpha } = manifest;
    const read = readSafetensors(weights);
    if (!read.ok) throw loaderErrors.truncated({ version, file: weightsName, why: read.why });
    const parsed = parseObject(Buffer.from(config).toString('utf8'));
    if (parsed === undefined) throw loaderErrors.truncated({ version, file: configName, why: 'it is not JSON' });
    const why = adapterMisfit(read.tensors, parsed, { rank, alpha, base: this.base });
    if (why !== undefined) throw loaderErrors.shapeMismatch({ version, why });
    const folder = this.folderOf(wanted);
    await this.write(folder, [
      [weightsName, weights],
      [configName, config],
      [manifestName, bytes],
    ]);
    return folder;
  }

  async remove(wanted: Pick<WantedVersion, 'version' | 'manifestDigest'>): Promise<void> {
    await rm(this.folderOf(wanted), { recursive: true, force: true });
  }

  /** Whatever its manifest was: of one that an earlier process loaded, it is not known. */
  async removeAll(version: string): Promise<void> {
    for (const name of await readdir(this.directory))
      if (name.startsWith(`${version}-`) && digestEnd.test(name.slice(version.length)))
        await rm(join(this.directory, name), { recursive: true, force: true });
  }

  private folderOf({ version, manifestDigest }: Pick<WantedVersion, 'version' | 'manifestDigest'>): string {
    return join(this.directory, `${version}-${manifestDigest.slice(0, 16)}`);
  }

  private async manifestOf(wanted: WantedVersion, baseModel: string) {
    const { version, policy, manifestDigest } = wanted;
    const kept = await this.kept(wanted, manifestName, manifestDigest);
    const bytes = kept ?? (await this.blob(version, 'its manifest', manifestDigest));
    let manifest: WeightsManifest;
    try {
      manifest = WeightsManifest.decode(bytes);
    } catch (cause) {
      throw loaderErrors.manifestInvalid({ version, why: 'it cannot be decoded' }, cause);
    }
    const same = manifest.policy === policy && manifest.version === version;
    if (!same) throw loaderErrors.manifestInvalid({ version, why: 'it is the manifest of another version' });
    if (manifest.baseModel !== baseModel)
      throw loaderErrors.manifestInvalid({ version, why: `it is for base model "${manifest.baseModel}"` });
    return { manifest, bytes };
  }

  private async file(wanted: WantedVersion, files: readonly WeightsFile[], name: string): Promise<Uint8Array> {
    const { version } = wanted;
    const file = files.find((candidate) => candidate.name === name);
    if (file === undefined) throw loaderErrors.manifestInvalid({ version, why: `it names no ${name}` });
    const kept = await this.kept(wanted, name, file.digest);
    const bytes = kept ?? (await this.blob(version, name, file.digest));
    if (bytes.byteLength !== file.bytes)
      throw loaderErrors.truncated({ version, file: name, why: `it has ${bytes.byteLength} of ${file.bytes} bytes` });
    return bytes;
  }

  /** A file of the version's folder, where it is what the digest says. */
  private async kept(wanted: WantedVersion, name: string, digest: string): Promise<Uint8Array | undefined> {
    const bytes = await readFile(join(this.folderOf(wanted), name)).catch(() => undefined);
    return bytes !== undefined && sha256Hex(bytes) === digest ? bytes : undefined;
  }

  private async blob(version: string, file: string, digest: string): Promise<Uint8Array> {
    try {
      return await this.blobs.get(digest);
    } catch (thrown) {
      const { code } = asBacktalkError(thrown);
      if (code === 'blob_corrupt') throw loaderErrors.digestMismatch({ version, file }, thrown);
      if (code === 'blob_missing') throw loaderErrors.missing({ version, file }, thrown);
      if (code === 'blob_digest_invalid')
        throw loaderErrors.manifestInvalid({ version, why: `${file} has no digest` }, thrown);
      throw thrown;
    }
  }

  private async write(folder: string, files: readonly (readonly [string, Uint8Array])[]): Promise<void> {
    // Engines read an adapter's files again whenever they like: a good folder is never removed and written anew.
    if (await holdsAlready(folder, files)) return;
    const beside = `${folder}.${randomUUID()}${beingWritten}`;
    await mkdir(beside, { recursive: true });
    for (const [name, bytes] of files) {
      const file = await open(join(beside, name), 'wx');
      try {
        await file.writeFile(bytes);
        await file.sync();
      } finally {
        await file.close();
      }
    }
    await rm(folder, { recursive: true, force: true });
    await rename(beside, folder);
  }
}

async function holdsAlready(folder: string, files: readonly (readonly [string, Uint8Array])[]): Promise<boolean> {
  for (const [name, bytes] of files) {
    const found = await readFile(join(folder, name)).catch(() => undefined);
    if (found === undefined || Buffer.compare(found, bytes) !== 0) return false;
  }
  return true;
}
