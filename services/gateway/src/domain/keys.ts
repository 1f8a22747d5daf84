// What does this key open?
//
// In: the header of a request, and records of hashed keys. Out: the key's hash, and the grant behind it, with the
// policies that it opens. Pure. Records hold hashes only; a key itself is never kept, compared or logged.
import { hash, timingSafeEqual } from 'node:crypto';
import { keyGrant, policiesOf, tenantsOf } from '@backtalk/kit';
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

/** What each key opens follows from all of them: keys of several tenants keep each other out. */
export function withPolicies(records: ReadonlyMap<string, KeyRecord>): ReadonlyMap<string, KeyRecord> {
  const tenants = tenantsOf(Array.from(records.values(), ({ grant }) => grant));
  const resolved = new Map<string, KeyRecord>();
  for (const [key, { hash, grant }] of records)
    resolved.set(key, { hash, grant: { ...grant, policies: policiesOf(grant, tenants) } });
  return resolved;
}

/** The hash is looked up, and what was found is compared as a whole in constant time. */
export function grantOf(records: ReadonlyMap<string, KeyRecord>, hash: string): Grant | undefined {
  const record = records.get(hash);
  if (record === undefined) return undefined;
  return timingSafeEqual(Buffer.from(record.hash), Buffer.from(hash)) ? record.grant : undefined;
}
