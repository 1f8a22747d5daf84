// The key that a launch variable gives to clients: SGLANG_API_KEY, which opens the endpoint. In: the key. Out: its SHA-256 in the
// data folder's file of keys, where the gateway reads it; the key itself is written nowhere.
import { existsSync, readFileSync } from 'node:fs';
import { keyGrant, sha256Hex } from '@backtalk/kit';
import { z } from 'zod';
import { writePrivate, type DataFolder } from './data-folder.js';
import { deployErrors } from './errors.js';

export const loopbackHosts: ReadonlySet<string> = new Set(['127.0.0.1', 'localhost', '::1']);

/** As `backtalk keys add` wants it. */
const charactersMin = 16;
const keysFile = z.object({ keys: z.array(z.looseObject({ sha256: z.string() })) });

/** Asked before anything is written or started. */
export function refuseShortKey(key: string, host: string): void {
  if (key.length < charactersMin && !loopbackHosts.has(host))
    throw deployErrors.boxRefused({
      why: `SGLANG_API_KEY has ${key.length} characters, and --host ${host} opens the endpoint to other machines: ${charactersMin} are the least`,
    });
}

export function openTo(data: Pick<DataFolder, 'keys'>, key: string): void {
  const { keys } = existsSync(data.keys) ? keysFile.parse(JSON.parse(readFileSync(data.keys, 'utf8'))) : { keys: [] };
  const sha256 = sha256Hex(key);
  if (keys.some((known) => known.sha256 === sha256)) return;
  const grant = keyGrant.parse({ tenant: 'default', user: 'local' });
  writePrivate(data.keys, `${JSON.stringify({ keys: [...keys, { sha256, ...grant }] }, null, 2)}\n`);
}
