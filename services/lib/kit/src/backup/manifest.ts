// What a backup's folder says about itself (manifest.json). Written last: a folder without one is not a whole backup.
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { z } from 'zod';
import { backupErrors } from './backup.js';

const snapshotFile = z.object({
  stream: z.string(),
  /** Below the backup's folder. */
  file: z.string(),
  bytes: z.number(),
  sha256: z.string(),
  messages: z.number(),
  lastSequence: z.number(),
  /** As the broker gave them; the restore gives them back unread. */
  config: z.record(z.string(), z.unknown()),
  state: z.record(z.string(), z.unknown()),
});
export type SnapshotFile = z.infer<typeof snapshotFile>;

const schema = z.object({
  format: z.literal(1),
  takenAt: z.string(),
  streams: z.array(snapshotFile),
  blobs: z.number(),
  /** Further files of the installation, below `files/`. */
  files: z.array(z.string()),
});
export type Manifest = z.infer<typeof schema>;

const fileOf = (folder: string) => join(folder, 'manifest.json');

export function writeManifest(folder: string, manifest: Manifest): void {
  writeFileSync(fileOf(folder), `${JSON.stringify(manifest, null, 2)}\n`, { flag: 'wx', mode: 0o600 });
}

export function readManifest(folder: string): Manifest {
  try {
    return schema.parse(JSON.parse(readFileSync(fileOf(folder), 'utf8')));
  } catch (error) {
    const why =
      error instanceof z.ZodError ? 'its manifest.json is of another format' : 'it has no readable manifest.json';
    throw backupErrors.notABackup({ folder, why }, error);
  }
}
