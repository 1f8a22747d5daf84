// Who is asking, in names that may leave the gateway, and is that caller's minute used up?
//
// In: what a key grants, and the request's `user` field. Out: the caller with keyed hashes in place of names, and the
// limit that is reached, if any. Pure.
import { keyedHash, tenantHash, userHash } from '@backtalk/kit';

export interface Limits {
  readonly requestsPerMinute?: number | undefined;
  readonly tokensPerMinute?: number | undefined;
  readonly concurrency?: number | undefined;
  readonly captureBytesPerDay?: number | undefined;
}

/** What one key stands for. */
export interface Grant {
  readonly tenant: string;
  readonly user: string;
  /** False: never learn from this key's turns. */
  readonly train: boolean;
  /** True where the request's `user` field says which of the tenant's people is talking. */
  readonly acceptsUserField: boolean;
  readonly limits: Limits;
  /** The policies that the key opens; undefined: all that are served here. */
  readonly policies?: readonly string[] | undefined;
}

export interface Caller {
  /** Keyed hash of the tenant's name. */
  readonly tenant: string;
  /** Keyed hash of the user's name. */
  readonly user: string;
  /** Stands for the key in limits and routing; never the key itself. */
  readonly keyId: string;
  readonly train: boolean;
  readonly limits: Limits;
  readonly policies: readonly string[] | undefined;
  /** Key of the answer keys: equal answers of two callers have nothing in common. */
  readonly answerSecret: string;
}

/** The one caller of a loopback gateway without keys. */
export const keylessGrant: Grant = {
  tenant: 'default',
  user: 'local',
  train: true,
  acceptsUserField: false,
  limits: {},
};
export const keylessId = 'keyless';

export function callerOf(secret: string, keyId: string, grant: Grant, userField: string | undefined): Caller {
  const name = grant.acceptsUserField && userField !== undefined && userField !== '' ? userField : grant.user;
  const tenant = tenantHash(secret, grant.tenant);
  const user = userHash(secret, grant.tenant, name);
  return {
    tenant,
    user,
    keyId,
    train: grant.train,
    limits: grant.limits,
    policies: grant.policies,
    answerSecret: keyedHash(secret, `answers\n${tenant}\n${user}`, 64),
  };
}

/** Of the policies that are served, those that the key opens. */
export function openPolicies(served: readonly string[], { policies }: Pick<Grant, 'policies'>): readonly string[] {
  return policies === undefined ? served : served.filter((policy) => policies.includes(policy));
}

/** Remembers the callers of keys that stand for one person, because every request asks for theirs. */
export class Callers {
  private readonly known = new WeakMap<Grant, Caller>();

  constructor(private readonly secret: string) {}

  of(keyId: string, grant: Grant, userField: string | undefined): Caller {
    if (grant.acceptsUserField) return callerOf(this.secret, keyId, grant, userField);
    const known = this.known.get(grant) ?? callerOf(this.secret, keyId, grant, undefined);
    this.known.set(grant, known);
    return known;
  }
}

export interface MinuteUse {
  /** Including the request that asks. */
  readonly requests: number;
  readonly tokens: number;
}

export const minuteMs = 60_000;

export function reachedLimit(limits: Limits, use: MinuteUse): string | undefined {
  const { requestsPerMinute, tokensPerMinute } = limits;
  if (requestsPerMinute !== undefined && use.requests > requestsPerMinute)
    return `${requestsPerMinute} requests a minute`;
  if (tokensPerMinute !== undefined && use.tokens >= tokensPerMinute) return `${tokensPerMinute} tokens a minute`;
  return undefined;
}

export function countsByMinute(limits: Limits): boolean {
  return limits.requestsPerMinute !== undefined || limits.tokensPerMinute !== undefined;
}

/** So many times as many requests as for answers. */
const readsForAnAnswer = 10;

/** What is only looked at is counted by itself: a page that looks every few seconds takes no answer from its key. */
export function readingOf(
  keyId: string,
  { requestsPerMinute }: Limits,
): { readonly of: string; readonly limits: Limits } {
  const limits = requestsPerMinute === undefined ? {} : { requestsPerMinute: readsForAnAnswer * requestsPerMinute };
  return { of: `${keyId}:reads`, limits };
}

export function secondsToNextMinute(nowMs: number): number {
  return Math.max(1, Math.ceil((minuteMs - (nowMs % minuteMs)) / 1000));
}
