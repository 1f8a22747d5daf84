// The one folder that holds state: its layout, its lock, its size, and how it is emptied.
import {
  mkdirSync,
  readFileSync,
  readlinkSync,
  renameSync,
  rmSync,
  statfsSync,
  symlinkSync,
  unlinkSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { modelsFolder } from '@backtalk/kit';
import { deployErrors } from './errors.js';
import { identityOf, stillRuns } from './process-record.js';

/** Folders, by what keeps its state there. */
const folders = {
  nats: 'nats',
  valkey: 'valkey',
  blobs: 'blobs',
  spool: 'spool',
  adapters: 'adapters',
  trainingCache: 'training',
  logs: 'logs',
  models: modelsFolder,
} as const;

/** `processes`: what runs, for the next start to end if this one cannot. `restoring`: the copy that is not whole here yet. */
const files = {
  connection: 'connection.json',
  keys: 'keys.json',
  secrets: 'secrets.json',
  processes: 'processes.json',
  restoring: 'restoring',
  natsConfig: 'nats.conf',
  valkeyConfig: 'valkey.conf',
} as const;

export type DataFolder = Readonly<Record<'path' | keyof typeof folders | keyof typeof files, string>>;

/** Its paths, whether it is there or not. */
export function dataFolderAt(path: string): DataFolder {
  const within = <K extends string>(names: Readonly<Record<K, string>>) =>
    Object.fromEntries(Object.entries<string>(names).map(([key, name]) => [key, join(path, name)])) as Record<
      K,
      string
    >;
  return { path, ...within(folders), ...within(files) };
}

export function openDataFolder(path: string): DataFolder {
  // Nothing can be made there, and Node tries without an end.
  if (/^\/(?:proc|sys)\//.test(path)) throw deployErrors.noFolderThere({ folder: path });
  const data = dataFolderAt(path);
  for (const name of Object.values(folders)) mkdirSync(join(path, name), { recursive: true, mode: 0o700 });
  return data;
}

/** A file that only its owner reads, whatever its mode was; a full disk leaves the old one. */
export function writePrivate(file: string, text: string): void {
  const beside = `${file}.new`;
  rmSync(beside, { force: true });
  writeFileSync(beside, text, { mode: 0o600 });
  renameSync(beside, file);
}

/**
 * Takes the folder for this process; gives the call that lets it go. Of two starts at one time, one gets it. The lock is a link that
 * leads nowhere, whose target says who holds it: it appears with that or not at all, never in place of another, and needs no room for
 * bytes, since a full disk is when a reset is wanted.
 */
export function lockDataFolder(folder: DataFolder): () => void {
  const file = join(folder.path, 'lock');
  const own = identityOf(process.pid) ?? '?';
  if (!hasLinked(own, file) && !hasReplaced(own, file))
    throw deployErrors.running({ folder: folder.path, pid: holderOf(file) ?? 0 });
  return () => {
    remove(file);
  };
}

/** Puts this lock in the place of one whose start was killed. One start at a time may: none takes away a lock that lives. */
function hasReplaced(own: string, file: string): boolean {
  const turn = `${file}.replaced`;
  if (!hasLinked(own, turn)) {
    // Where its start was killed in the middle of this, the next start finds the way free.
    const left = textOf(turn);
    if (left !== undefined && stillRuns(left) === undefined) remove(turn);
    return false;
  }
  try {
    if (holderOf(file) !== undefined) return false;
    remove(file);
    return hasLinked(own, file);
  } finally {
    remove(turn);
  }
}

/** The process that holds this lock and runs; this one may take its own again. */
function holderOf(lock: string): number | undefined {
  const pid = stillRuns(textOf(lock) ?? '');
  return pid === process.pid ? undefined : pid;
}

/** Undefined where there is no such lock, or no more. An earlier release wrote a file. */
function textOf(lock: string): string | undefined {
  let text = '';
  const isThere = isDone('ENOENT', () => {
    if (!isDone('EINVAL', () => (text = readlinkSync(lock)))) text = readFileSync(lock, 'utf8');
  });
  return isThere ? text : undefined;
}

const hasLinked = (identity: string, lock: string) => isDone('EEXIST', () => symlinkSync(identity, lock));
/** `rmSync` of some releases of Node leaves a link that leads nowhere. */
const remove = (lock: string) => isDone('ENOENT', () => unlinkSync(lock));

/** False where the one expected thing was in the way. */
function isDone(expected: string, work: () => unknown): boolean {
  try {
    work();
    return true;
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === expected) return false;
    throw error;
  }
}

const roomBytes = 50_000_000;

/** Whether its disk takes more than a few facts. */
export function hasRoom(path: string): boolean {
  const { bavail, bsize } = statfsSync(path);
  return bavail * bsize >= roomBytes;
}
