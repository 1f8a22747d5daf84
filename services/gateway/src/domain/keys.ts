// What does this key open?
//
// In: the header of a request, and records of hashed keys. Out: the key's hash, and the grant behind it. Pure. Records
// hold hashes only; a key itself is never kept, compared or logged.
import { hash, timingSafeEqual } from 'node:crypto';
import { keyGrant } from '@backtalk/kit';
import { z } from 'zod';
import type { Grant } from './caller.js';

const hashText = z.string().regex(/^[0-9a-f]{64}$/, 'a key is given as its SHA-256 in hexadecimal');

export const keysFile = z.object({ keys: z.array(keyGrant.extend({ sha256: hashText })) });

export interface KeyRecord {
  /** SHA-256 of the key, hexadecimal. */
  readonly hash: string;
  readonly grant: Grant;
}

const bearer = /^Bearer +(\S{1,512}) *$/i;

/** SHA-256 of the key in the header, or undefined where there is none. */
export function hashOfHeader(authorization: string | undefined): string | undefined {
  const key = bearer.exec(authorization ?? '')?.[1];
  return key === undefined ? undefined : hash('sha256', key, 'hex');
}

/** The hash is looked up, and what was found is compared as a whole in constant time. */
export function grantOf(records: ReadonlyMap<string, KeyRecord>, hash: string): Grant | undefined {
  const record = records.get(hash);
  if (record === undefined) return undefined;
  return timingSafeEqual(Buffer.from(record.hash), Buffer.from(hash)) ? record.grant : undefined;
}
