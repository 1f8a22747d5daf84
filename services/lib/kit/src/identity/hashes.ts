// Hashes of two kinds: keyed ones, which stand for a name that nobody may guess, and plain digests, which name bytes.
import { createHash, createHmac } from 'node:crypto';

/** HMAC-SHA256 in hex, cut to `length` characters (64 bits at 16). */
export function keyedHash(secret: string, text: string, length = 16): string {
  return createHmac('sha256', secret).update(text).digest('hex').slice(0, length);
}

export function sha256Hex(bytes: Uint8Array | string): string {
  return createHash('sha256').update(bytes).digest('hex');
}
