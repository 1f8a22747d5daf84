// The one folder that holds state: its layout, how its files are written, and its room.
import { mkdirSync, renameSync, rmSync, statfsSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { modelsFolder } from '@backtalk/kit';
import { deployErrors } from './errors.js';

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

const roomBytes = 50_000_000;

/** Whether its disk takes more than a few facts. */
export function hasRoom(path: string): boolean {
  const { bavail, bsize } = statfsSync(path);
  return bavail * bsize >= roomBytes;
}
