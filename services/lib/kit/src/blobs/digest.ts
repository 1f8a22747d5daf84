// Is this text the name of a blob? In: text. Out: the same text, or `blob_digest_invalid`. Pure.
import { blobErrors } from './errors.js';

export function checkDigest(text: string): string {
  if (!/^[0-9a-f]{64}$/.test(text)) throw blobErrors.blobDigestInvalid();
  return text;
}
