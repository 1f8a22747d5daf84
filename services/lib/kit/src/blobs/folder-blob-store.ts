// A blob store in a folder. A blob appears whole or not at all: it is written beside, forced to disk, then renamed.
// It never trusts the disk: what is read is hashed again.
import { randomUUID } from 'node:crypto';
import { mkdir, open, opendir, readFile, rename, rm, stat, utimes } from 'node:fs/promises';
import { join } from 'node:path';
import type { BacktalkError } from '../errors/backtalk-error.js';
import { sha256Hex } from '../identity/ids.js';
import { blobErrors, type BlobInfo, type BlobStore, checkDigest, isSound, isDigest } from './blob-store.js';

export function folderBlobStore(directory: string): BlobStore {
  return new FolderBlobStore(directory);
}

/** Much longer than a blob is being written. */
const strayAgeMs = 60 * 60 * 1000;
const incoming = 'incoming';

/** Drops what a process that died had written in part; nothing else names or counts it. Out: how many. */
export async function dropStrayFiles(directory: string, nowMs: number): Promise<number> {
  let dropped = 0;
  for await (const name of entriesOf(join(directory, incoming))) {
    const path = join(directory, incoming, name);
    const found = await stat(path).catch(ignoreMissing);
    if (found === undefined || found.mtimeMs > nowMs - strayAgeMs) continue;
    await rm(path, { force: true });
    dropped += 1;
  }
  return dropped;
}

class FolderBlobStore implements BlobStore {
  constructor(private readonly directory: string) {}

  async put(bytes: Uint8Array): Promise<string> {
    const digest = sha256Hex(bytes);
    const path = this.pathOf(digest);
    try {
      // A file with other bytes is a torn or rotten one, and is written again.
      if (await this.holds(digest, bytes.byteLength)) {
        const now = new Date();
        await utimes(path, now, now).catch(ignoreMissing);
        if ((await sizeOf(path)) !== undefined) return digest;
      }
      await this.write(path, bytes);
    } catch (error) {
      throw translate(error, 'put', digest);
    }
    return digest;
  }

  async get(digest: string): Promise<Uint8Array> {
    const bytes = await readFile(this.pathOf(digest)).catch((error: unknown) => {
      throw translate(error, 'get', digest);
    });
    if (sha256Hex(bytes) !== digest) throw blobErrors.blobCorrupt({ digest });
    return bytes;
  }

  async has(digest: string): Promise<boolean> {
    return (await sizeOf(this.pathOf(digest))) !== undefined;
  }

  async delete(digest: string): Promise<void> {
    await rm(this.pathOf(digest), { force: true });
  }

  async *list(): AsyncIterable<BlobInfo> {
    for await (const folder of entriesOf(this.directory)) {
      if (!/^[0-9a-f]{2}$/.test(folder)) continue;
      for await (const digest of entriesOf(join(this.directory, folder))) {
        if (!isDigest(digest)) continue;
        const found = await stat(join(this.directory, folder, digest)).catch(ignoreMissing);
        if (found !== undefined) yield { digest, bytes: found.size, modifiedMs: found.mtimeMs };
      }
    }
  }

  private async holds(digest: string, size: number): Promise<boolean> {
    return (await sizeOf(this.pathOf(digest))) === size && isSound(this, digest);
  }

  private async write(path: string, bytes: Uint8Array): Promise<void> {
    const folder = join(path, '..');
    const beside = join(this.directory, incoming, randomUUID());
    await mkdir(folder, { recursive: true });
    await mkdir(join(beside, '..'), { recursive: true });
    try {
      const file = await open(beside, 'wx');
      try {
        await file.writeFile(bytes);
        await file.sync();
      } finally {
        await file.close();
      }
      await rename(beside, path);
    } finally {
      await rm(beside, { force: true });
    }
    // The name is on disk only when its folder is.
    for (const changed of [folder, this.directory]) {
      const opened = await open(changed, 'r');
      try {
        await opened.sync();
      } finally {
        await opened.close();
      }
    }
  }

  private pathOf(digest: string): string {
    return join(this.directory, checkDigest(digest).slice(0, 2), digest);
  }
}

async function sizeOf(path: string): Promise<number | undefined> {
  return (await stat(path).catch(ignoreMissing))?.size;
}

async function* entriesOf(path: string): AsyncIterable<string> {
  const opened = await opendir(path).catch(ignoreMissing);
  if (opened === undefined) return;
  for await (const entry of opened) yield entry.name;
}

function ignoreMissing(error: unknown): undefined {
  if (systemCode(error) === 'ENOENT') return undefined;
  throw error;
}

function systemCode(error: unknown): string | undefined {
  return error instanceof Error && 'code' in error && typeof error.code === 'string' ? error.code : undefined;
}

function translate(error: unknown, doing: string, digest: string): unknown {
  const code = systemCode(error);
  if (code === undefined || !code.startsWith('E')) return error;
  if (code === 'ENOENT' && doing === 'get') return blobErrors.blobMissing({ digest }, error);
  const full: BacktalkError | undefined =
    code === 'ENOSPC' || code === 'EDQUOT' ? blobErrors.blobStoreFull({}, error) : undefined;
  return full ?? blobErrors.blobStoreFailed({ doing, reason: code }, error);
}
