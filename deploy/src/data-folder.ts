// The one folder that holds state: its layout, its lock, its size, and how it is emptied.
import {
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  statfsSync,
  statSync,
  writeFileSync,
  type Dirent,
} from 'node:fs';
import { join } from 'node:path';
import { deployErrors } from './errors.js';
import { identityOf, stillRuns } from './process-identity.js';

export interface DataFolder {
  readonly path: string;
  readonly nats: string;
  readonly valkey: string;
  readonly blobs: string;
  readonly spool: string;
  readonly adapters: string;
  readonly trainingCache: string;
  readonly logs: string;
  readonly connection: string;
  readonly keys: string;
  readonly secrets: string;
  /** What runs, for the next start to end if this one cannot. */
  readonly processes: string;
}

export function openDataFolder(path: string): DataFolder {
  const folder = {
    path,
    nats: join(path, 'nats'),
    valkey: join(path, 'valkey'),
    blobs: join(path, 'blobs'),
    spool: join(path, 'spool'),
    adapters: join(path, 'adapters'),
    trainingCache: join(path, 'training'),
    logs: join(path, 'logs'),
    connection: join(path, 'connection.json'),
    keys: join(path, 'keys.json'),
    secrets: join(path, 'secrets.json'),
    processes: join(path, 'processes.json'),
  };
  for (const part of [
    folder.nats,
    folder.valkey,
    folder.blobs,
    folder.spool,
    folder.adapters,
    folder.trainingCache,
    folder.logs,
  ]) {
    mkdirSync(part, { recursive: true, mode: 0o700 });
  }
  return folder;
}

/** Takes the folder for this process; gives the call that lets it go. */
export function lockDataFolder(folder: DataFolder): () => void {
  const file = join(folder.path, 'lock');
  if (existsSync(file)) {
    // The lock of a start that was killed names a process that no longer runs.
    const pid = stillRuns(readFileSync(file, 'utf8'));
    if (pid !== undefined && pid !== process.pid) throw deployErrors.running({ folder: folder.path, pid });
  }
  writeFileSync(file, identityOf(process.pid) ?? '');
  return () => {
    rmSync(file, { force: true });
  };
}

/** Bytes of every file below the folder. */
export function folderBytes(path: string): number {
  let bytes = 0;
  for (const entry of entriesOf(path)) {
    const child = join(path, entry.name);
    if (entry.isDirectory()) bytes += folderBytes(child);
    else bytes += statSync(child, { throwIfNoEntry: false })?.size ?? 0;
  }
  return bytes;
}

const roomBytes = 50_000_000;

/** Whether its disk takes more than a few facts. */
export function hasRoom(path: string): boolean {
  const { bavail, bsize } = statfsSync(path);
  return bavail * bsize >= roomBytes;
}

/** A folder may vanish while it is measured: loaders put versions away. */
function entriesOf(path: string): Dirent[] {
  try {
    return readdirSync(path, { withFileTypes: true });
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return [];
    throw error;
  }
}

/** Empties the folder; secrets go too, so every keyed hash of the next start is another one. */
export function emptyDataFolder(path: string): void {
  rmSync(path, { recursive: true, force: true });
}
