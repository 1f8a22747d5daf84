// The files of a backup that are no part of the log: secrets and keys. In: the backup's folder, and a data folder in which nothing was
// stored yet. Out: the files, in place, beside a mark that stays until all of the copy is there. A restore that was cut off, by a kill
// or a busy port, is made again from its beginning.
import { chmodSync, copyFileSync, existsSync, mkdirSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { readManifest } from '@backtalk/kit';
import { writePrivate, type DataFolder } from './data-folder.js';
import { deployErrors } from './errors.js';

/** @param backup folder of a whole backup, with its manifest */
export function copyRestored(backup: string, data: DataFolder): void {
  const { files } = readManifest(backup);
  refuseUsed(data);
  if (existsSync(data.restoring)) empty(data);
  writePrivate(data.restoring, backup);
  for (const name of files) {
    copyFileSync(join(backup, 'files', name), join(data.path, name));
    chmodSync(join(data.path, name), 0o600);
  }
}

/** The secret of all keyed hashes is in a folder that was used: with the copy's, no user of it would be recognised. */
export function refuseUsed(data: DataFolder): void {
  if (existsSync(data.secrets) && !existsSync(data.restoring)) throw deployErrors.notNew({ folder: data.path });
}

/** Part of a copy looks like an installation that has learned little. */
export function refuseCutOff(data: DataFolder): void {
  if (!existsSync(data.restoring)) return;
  throw deployErrors.restoreCutOff({ folder: data.path, copy: readFileSync(data.restoring, 'utf8') });
}

/** All of the copy is there. */
export function endRestore(data: DataFolder): void {
  rmSync(data.restoring, { force: true });
}

/** Of what a restore has put there. */
function empty(data: DataFolder): void {
  rmSync(data.secrets, { force: true });
  for (const folder of [data.nats, data.blobs]) {
    rmSync(folder, { recursive: true, force: true });
    mkdirSync(folder, { mode: 0o700 });
  }
}
