// Lets a hint, which is text, travel through the queue of votes, which holds none: it is encrypted with a key that follows
// from the turn itself, so that only a process that reads the turn from the log can read the hint. When the turn is
// erased, the hint is lost with it.
import { createCipheriv, createDecipheriv, createHash, randomBytes } from 'node:crypto';
import type { Material } from '../domain/material.js';

const cipher = 'aes-256-gcm';
const ivBytes = 12;
const tagBytes = 16;

export function sealHint(hint: string, material: Material): string {
  if (hint === '') return '';
  const iv = randomBytes(ivBytes);
  const sealing = createCipheriv(cipher, keyOf(material), iv, { authTagLength: tagBytes });
  const sealed = Buffer.concat([sealing.update(hint, 'utf8'), sealing.final()]);
  return Buffer.concat([iv, sealing.getAuthTag(), sealed]).toString('base64');
}

/** Empty where the turn is not the one that the hint was sealed with, as between two releases that read turns differently. */
export function openHint(sealed: string, material: Material): string {
  if (sealed === '') return '';
  const bytes = Buffer.from(sealed, 'base64');
  try {
    const iv = bytes.subarray(0, ivBytes);
    const opening = createDecipheriv(cipher, keyOf(material), iv, { authTagLength: tagBytes });
    opening.setAuthTag(bytes.subarray(ivBytes, ivBytes + tagBytes));
    return Buffer.concat([opening.update(bytes.subarray(ivBytes + tagBytes)), opening.final()]).toString('utf8');
  } catch {
    // A vote without its hint is better than no judgement.
    return '';
  }
}

function keyOf({ place, conversation, answer, next }: Material): Buffer {
  return createHash('sha256')
    .update(JSON.stringify([place.turn, conversation, answer, next.text]))
    .digest();
}
