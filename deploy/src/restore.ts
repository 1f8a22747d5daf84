// A data folder that goes on from a backup: keys and secrets before anything starts, streams and blobs once the broker serves.
import { copyFileSync, existsSync } from 'node:fs';
import { join } from 'node:path';
import { folderBlobStore, readManifest, restoreBackup, type Broker } from '@backtalk/kit';
import type { DataFolder } from './data-folder.js';
import { deployErrors } from './errors.js';
import type { Terminal } from './terminal.js';

/** The secret of all keyed hashes is among them: with another one, nobody would be recognised. */
export function takeFiles(backup: string, data: DataFolder): void {
  const { files } = readManifest(backup);
  if (existsSync(data.secrets)) throw deployErrors.notNew({ folder: data.path });
  for (const name of files) copyFileSync(join(backup, 'files', name), join(data.path, name));
}

export async function restoreInto(broker: Broker, data: DataFolder, backup: string, terminal: Terminal): Promise<void> {
  const blobs = folderBlobStore(data.blobs);
  const manifest = await restoreBackup({ broker, blobs, folder: backup });
  const messages = manifest.streams.reduce((sum, stream) => sum + stream.messages, 0);
  terminal.step(`restored ${String(messages)} facts and ${String(manifest.blobs)} blobs of ${manifest.takenAt}`);
}
