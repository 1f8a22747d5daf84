// A copy of a running installation in a folder, and an installation made from such a copy. Streams keep their sequences and
// their consumers' positions, so that nothing is handled twice; what is rebuilt from the log (routes, load, leases, all of
// Valkey) is left out. No batch may close between the copy of the turns and that of the weights: a turn is pending in both
// or taken in both. Blobs come after the log, so that every batch and version finds its bytes, and what names payloads comes last.
import { createHash } from 'node:crypto';
import { createReadStream, existsSync } from 'node:fs';
import { chmod, copyFile, mkdir, open } from 'node:fs/promises';
import { join } from 'node:path';
import type { BlobStore } from '../blobs/blob-store.js';
import { folderBlobStore } from '../blobs/folder-blob-store.js';
import type { Broker } from '../broker/connect.js';
import { asBacktalkError, defineErrors } from '../errors/backtalk-error.js';
import { type StreamBounds, streamPlans } from '../topology/streams.js';
import { makeFolder } from './make-folder.js';
import {
  afterBlobs,
  apart,
  type keptFiles,
  type keptStreams,
  type Manifest,
  readManifest,
  type Served,
  type SnapshotFile,
  snapshotFileOf,
  together,
  writeManifest,
} from './manifest.js';
import { readSnapshot, restoreSnapshot } from './snapshot.js';

const triesMax = 5;

interface BackUpOptions {
  /** Of the admin user. */
  readonly broker: Broker;
  readonly blobs: BlobStore;
  readonly folder: string;
  /** Further files to keep, by their paths: keys and secrets of a laptop. */
  readonly files?: readonly { readonly name: (typeof keptFiles)[number]; readonly path: string }[];
  /** What the installation serves, where it says so. */
  readonly served?: Served | undefined;
  readonly onProgress?: (what: string, done: number) => void;
}

export async function backUp(options: BackUpOptions): Promise<Manifest> {
  const { broker, blobs, folder, files = [], served, onProgress } = options;
  await makeFolder(folder);
  if (existsSync(join(folder, 'manifest.json'))) throw backupErrors.folderTaken({ folder });
  // It may have been there: everything below it is its owner's alone.
  await chmod(folder, 0o700);
  await mkdir(join(folder, 'streams'), { recursive: true });
  await mkdir(join(folder, 'files'), { recursive: true });
  const streams: SnapshotFile[] = [];
  streams.push(...(await copyTogether(broker, folder)));
  // After the log: what a consumer has taken from it into a bucket is in the bucket's copy.
  for (const stream of apart) {
    onProgress?.(stream, streams.length);
    streams.push(await copyStream(broker, stream, folder));
  }
  for (const { name, path } of files) {
    await copyFile(path, join(folder, 'files', name));
    await chmod(join(folder, 'files', name), 0o600);
  }
  const corruptBlobs: string[] = [];
  const copied = await copyBlobs(blobs, folderBlobStore(join(folder, 'blobs')), onProgress, corruptBlobs);
  streams.push(await copyStream(broker, afterBlobs, folder));
  const names = files.map(({ name }) => name);
  const takenAt = new Date().toISOString();
  const manifest: Manifest = { format: 1, takenAt, streams, blobs: copied, corruptBlobs, files: names, served };
  writeManifest(folder, manifest);
  return manifest;
}

interface RestoreOptions {
  /** Of the admin user. */
  readonly broker: Broker;
  readonly blobs: BlobStore;
  readonly folder: string;
  /** Of the streams that are made. */
  readonly bounds?: StreamBounds;
  readonly onProgress?: (what: string, done: number) => void;
}

/** Into a broker that has none of the streams. Checks every file before the first is sent. */
export async function restoreBackup(options: RestoreOptions): Promise<Manifest> {
  const { broker, blobs, folder, bounds = {}, onProgress } = options;
  const manifest = readManifest(folder);
  for await (const name of broker.jsm.streams.names()) {
    if (manifest.streams.some(({ stream }) => stream === name)) throw backupErrors.notEmpty({ stream: name });
  }
  for (const { stream, file, sha256 } of manifest.streams) {
    const hash = createHash('sha256');
    try {
      const bytes: AsyncIterable<Buffer> = createReadStream(join(folder, file));
      for await (const chunk of bytes) hash.update(chunk);
    } catch (error) {
      throw backupErrors.notABackup({ folder, why: `the file of stream ${stream} cannot be read` }, error);
    }
    if (hash.digest('hex') !== sha256)
      throw backupErrors.notABackup({ folder, why: `the file of stream ${stream} has other bytes than were written` });
  }
  await copyBlobs(folderBlobStore(join(folder, 'blobs')), blobs, onProgress);
  const plans = streamPlans(bounds);
  for (const [at, { stream, file, state }] of manifest.streams.entries()) {
    onProgress?.(stream, at);
    const config = plans.find(({ name }) => name === stream) ?? { name: stream };
    await restoreSnapshot(broker, stream, { state, config }, createReadStream(join(folder, file)));
  }
  return manifest;
}

/** Again, until no batch and no version came between the two. */
async function copyTogether(broker: Broker, folder: string): Promise<SnapshotFile[]> {
  const [turns, weights] = together;
  for (let tries = 0; tries < triesMax; tries += 1) {
    const { state } = await broker.jsm.streams.info(weights);
    const copies = [await copyStream(broker, turns, folder), await copyStream(broker, weights, folder)];
    if (copies.at(-1)?.lastSequence === state.last_seq) return copies;
  }
  throw backupErrors.tooBusy({ tries: triesMax });
}

async function copyStream(broker: Broker, stream: (typeof keptStreams)[number], folder: string): Promise<SnapshotFile> {
  const file = snapshotFileOf(stream);
  const target = await open(join(folder, file), 'w', 0o600);
  const hash = createHash('sha256');
  let bytes = 0;
  try {
    const head = await readSnapshot(broker, stream, async (chunk) => {
      hash.update(chunk);
      bytes += chunk.byteLength;
      await target.write(chunk);
    });
    await target.sync();
    const [messages, lastSequence] = [Number(head.state['messages']), Number(head.state['last_seq'])];
    return { stream, file, bytes, sha256: hash.digest('hex'), messages, lastSequence, ...head };
  } finally {
    await target.close();
  }
}

/**
 * Each is checked against its digest as it is read; those that are there already are not written again.
 *
 * @param corruptBlobs gets the digests of those with other bytes than their name says, which are passed over; without it, the first ends the copy
 */
async function copyBlobs(
  from: BlobStore,
  to: BlobStore,
  onProgress: BackUpOptions['onProgress'],
  corruptBlobs?: string[],
): Promise<number> {
  let copied = 0;
  for await (const { digest } of from.list()) {
    if (!(await to.has(digest))) {
      // Deleted meanwhile, as those are that nothing refers to.
      const bytes = await from.get(digest).catch((error: unknown) => {
        const { code } = asBacktalkError(error);
        if (code === 'blob_corrupt' && corruptBlobs !== undefined) corruptBlobs.push(digest);
        else if (code !== 'blob_missing') throw error;
        return undefined;
      });
      if (bytes === undefined) continue;
      await to.put(bytes);
    }
    copied += 1;
    onProgress?.('blobs', copied);
  }
  return copied;
}

export const backupErrors = defineErrors('backup', {
  folderTaken: {
    code: 'backup_folder_taken',
    retry: 'never',
    message: (p: { folder: string }) => `${p.folder} holds a backup already: name another folder.`,
  },
  notABackup: {
    code: 'backup_unreadable',
    retry: 'never',
    message: (p: { folder: string; why: string }) => `${p.folder} is not a whole backup: ${p.why}.`,
  },
  notEmpty: {
    code: 'restore_not_empty',
    retry: 'never',
    message: (p: { stream: string }) =>
      `Stream ${p.stream} exists here already: restore into an installation that has never run.`,
  },
  tooBusy: {
    code: 'backup_too_busy',
    retry: 'later',
    message: (p: { tries: number }) =>
      `Batches closed during each of ${String(p.tries)} copies: pause learning (npx backtalk pause) and try again.`,
  },
  snapshotBroken: {
    code: 'snapshot_broken',
    retry: 'later',
    message: (p: { stream: string; why: string }) => `The snapshot of stream ${p.stream} broke off: ${p.why}.`,
  },
});
