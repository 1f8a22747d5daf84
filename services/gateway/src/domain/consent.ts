// May this turn be learned from?
//
// In: what the key, the request and the session so far say. Out: the consent, with who decided. One "no" is enough, and
// an unclear word counts as one. Pure.
import type { Consent } from '@backtalk/proto/facts';

export interface ConsentSources {
  readonly keyTrains: boolean;
  /** The header X-Backtalk-Train. */
  readonly requestHeader: string | undefined;
  /** False when the turn that this one continues, or its session, was opted out. */
  readonly sessionTrains: boolean;
}

const on = new Set(['', 'on', 'true', '1', 'yes']);

export function consentOf({ keyTrains, requestHeader, sessionTrains }: ConsentSources): Consent {
  if (!keyTrains) return { train: false, source: 'key' };
  if (requestHeader !== undefined && !on.has(requestHeader.trim().toLowerCase()))
    return { train: false, source: 'request' };
  if (!sessionTrains) return { train: false, source: 'session' };
  return { train: true, source: 'default' };
}
