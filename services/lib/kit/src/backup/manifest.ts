// What a backup's folder says about itself (manifest.json). Written last: a folder without one is not a whole backup.
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { z } from 'zod';
import { quantizations } from '../model/model-memory.js';
import { backupErrors } from './backup.js';

/** What a backup is made of: nothing else is read, and nothing is written elsewhere, whatever a manifest says. */
export const apart = ['KV_keys', 'KV_settings', 'KV_refusals', 'DEAD', 'REPLAY'] as const;
export const together = ['TURNS', 'WEIGHTS'] as const;
/** After the blobs: a payload is named before it is put, so that each that was copied has its name. */
export const afterBlobs = 'KV_payloads';
export const keptStreams = [...apart, ...together, afterBlobs] as const;
export const keptFiles = ['secrets.json', 'keys.json'] as const;

/** Below the backup's folder. */
export const snapshotFileOf = (stream: string): string => `streams/${stream}.snapshot`;

const snapshotFile = z
  .object({
    stream: z.enum(keptStreams),
    file: z.string(),
    bytes: z.number(),
    sha256: z.string(),
    messages: z.number(),
    lastSequence: z.number(),
    /** As the broker gave it, for people: the restore makes streams as this version plans them. */
    config: z.record(z.string(), z.unknown()),
    /** As the broker gave it; the restore gives it back unread. */
    state: z.record(z.string(), z.unknown()),
  })
  .refine(({ stream, file }) => file === snapshotFileOf(stream));
export type SnapshotFile = z.infer<typeof snapshotFile>;

/** What its versions belong to: a start from it chooses the same. */
const served = z.object({
  baseModel: z.string(),
  policies: z.array(z.string()).readonly(),
  quantization: z.enum(quantizations),
});
export type Served = z.infer<typeof served>;

const schema = z.object({
  format: z.literal(1),
  takenAt: z.string(),
  streams: z.array(snapshotFile),
  blobs: z.number(),
  /** Digests of blobs that were rotten already, and are not in the copy. */
  corruptBlobs: z.array(z.string()).default([]),
  /** Further files of the installation, below `files/`. */
  files: z.array(z.enum(keptFiles)),
  /** Left out by a cluster, which does not say it, and by earlier releases. */
  served: served.optional(),
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
