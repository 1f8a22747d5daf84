// Has this key used up its minute?
//
// In: a key's limits and what the current minute has seen. Out: which limit is reached, or none. Pure.
import type { Limits } from './caller.js';

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

export function secondsToNextMinute(nowMs: number): number {
  return Math.max(1, Math.ceil((minuteMs - (nowMs % minuteMs)) / 1000));
}
