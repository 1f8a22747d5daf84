// Names for new things. They sort by the time of their making (UUID version 7) and hold no dash, colon or dot, so
// that they are valid broker subject tokens and job ids.
import { randomFillSync } from 'node:crypto';
import { v7 } from 'uuid';

export function newTurnId(): string {
  return `turn_${newId()}`;
}

export function newSessionId(): string {
  return `session_${newId()}`;
}

let lastMs = 0;
/** Puts ids of one millisecond in order. */
let place = 0;

export function newId(): string {
  const random = randomBlock();
  const now = Date.now();
  if (now > lastMs) [lastMs, place] = [now, random.readUInt32BE(6) >>> 1];
  else place += 1;
  return v7({ random, msecs: lastMs, seq: place }).replaceAll('-', '');
}

const blockBytes = 16;
/** The system is asked for much at once: every call costs the same. */
const pool = Buffer.alloc(256 * blockBytes);
let used = pool.length;

function randomBlock(): Buffer {
  if (used === pool.length) {
    randomFillSync(pool);
    used = 0;
  }
  used += blockBytes;
  return pool.subarray(used - blockBytes, used);
}
