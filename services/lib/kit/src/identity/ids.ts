// Names for new things. They sort by the time of their making (UUID version 7) and hold no dash, colon or dot, so
// that they are valid broker subject tokens and job ids.
import { randomFillSync, createHash, createHmac } from 'node:crypto';
import { v7 } from 'uuid';

export function newTurnId(): string {
  return `turn_${newId()}`;
}

let lastMs = 0;
/** Puts ids of one millisecond in order. */
let place = 0;

const blockBytes = 16;
/** The system is asked for much at once: every call costs the same. */
const pool = Buffer.alloc(256 * blockBytes);
let used = pool.length;

export function newId(): string {
  if (used === pool.length) {
    randomFillSync(pool);
    used = 0;
  }
  used += blockBytes;
  const random = pool.subarray(used - blockBytes, used);
  const now = Date.now();
  if (now > lastMs) [lastMs, place] = [now, random.readUInt32BE(6) >>> 1];
  else place += 1;
  return v7({ random, msecs: lastMs, seq: place }).replaceAll('-', '');
}

/** When an id was made, milliseconds since 1970 by its maker's clock; nothing where it is of another making. */
export function madeAtMs(id: string): number | undefined {
  const [, hex] = /^[a-z]+_([0-9a-f]{12})7[0-9a-f]{19}$/.exec(id) ?? [];
  return hex === undefined ? undefined : Number.parseInt(hex, 16);
}

/** HMAC-SHA256 in hex, cut to `length` characters (64 bits at 16). */
export function keyedHash(secret: string, text: string, length = 16): string {
  return createHmac('sha256', secret).update(text).digest('hex').slice(0, length);
}

/** What stands for a tenant in subjects and facts. */
export function tenantHash(secret: string, tenant: string): string {
  return keyedHash(secret, `tenant\n${tenant}`);
}

/** What stands for a tenant's user in subjects and facts. */
export function userHash(secret: string, tenant: string, user: string): string {
  return keyedHash(secret, `user\n${tenant}\n${user}`);
}

export function sha256Hex(bytes: Uint8Array | string): string {
  return createHash('sha256').update(bytes).digest('hex');
}
