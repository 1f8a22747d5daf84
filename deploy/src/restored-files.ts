// The files of a backup that are no part of the log: secrets and keys. In: the backup's folder, and a data folder in which nothing was
// stored yet. Out: the files, in place. A start that ended before its broker began may be made again.
import { chmodSync, copyFileSync, existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { readManifest } from '@backtalk/kit';
import type { DataFolder } from './data-folder.js';
import { deployErrors } from './errors.js';

/**
 * What is there already goes, if it is a copy of the same.
 * @param backup folder of a whole backup, with its manifest
 */
export function copyRestored(backup: string, data: DataFolder): void {
  const { files } = readManifest(backup);
  // The secret of all keyed hashes is among them: with another one, no user would be recognised.
  if (existsSync(data.secrets) && !isBegun(backup, data)) throw deployErrors.notNew({ folder: data.path });
  for (const name of files) {
    copyFileSync(join(backup, 'files', name), join(data.path, name));
    chmodSync(join(data.path, name), 0o600);
  }
}

/** Only these files were copied, as by a start that found its ports in use. */
function isBegun(backup: string, data: DataFolder): boolean {
  const copy = join(backup, 'files', 'secrets.json');
  if (!existsSync(copy) || readdirSync(data.nats).length > 0) return false;
  return readFileSync(copy).equals(readFileSync(data.secrets));
}
