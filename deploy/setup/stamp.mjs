// Remembers what a step of the set-up was made from, so that a later start skips what is up to date.

import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname } from 'node:path';

/** Digest of the named files' bytes and of any further text (versions, options). */
export function digestOf(files, ...texts) {
  const hash = createHash('sha256');
  for (const file of files) hash.update(existsSync(file) ? readFileSync(file) : 'absent').update('\0');
  for (const text of texts) hash.update(text).update('\0');
  return hash.digest('hex');
}

export function isStamped(stampFile, digest) {
  return existsSync(stampFile) && readFileSync(stampFile, 'utf8') === digest;
}

export function stamp(stampFile, digest) {
  mkdirSync(dirname(stampFile), { recursive: true });
  writeFileSync(stampFile, digest);
}
