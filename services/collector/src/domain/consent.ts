// May a turn be trained on? In: what its own request says, and what is known of the turns before it. Out: yes or no, and
// who said so. A "no" holds for all that follows it, until the person says yes in so many words. Where a person said no
// somewhere and it cannot be told whether a request follows from there, it counts as following. Pure.
import type { Consent } from '@backtalk/proto/facts';

/** `unknown` is no yes: the turn is withheld because its consent cannot be established. */
export type Trains = 'yes' | 'no' | 'unknown';

export interface Before {
  /** The turn that the request continues; `none` where it holds no answer at all, nothing where that turn is not found. */
  readonly parent: Trains | 'none' | undefined;
  /** The last turn of the session that the client declared; nothing where it declares none. */
  readonly session: Trains | undefined;
  /** Whether the person ever said no, however long ago. */
  readonly saidNo: boolean;
}

/** True where the request itself decides: by a header, or by the key. */
export function decidesItself(own: Consent): boolean {
  return !own.train || own.source === 'request';
}

export function consentAfter(own: Consent, { parent, session, saidNo }: Before): Consent {
  if (decidesItself(own)) return own;
  if (parent === 'no' || session === 'no') return { train: false, source: 'session' };
  if (parent === 'unknown' || session === 'unknown') return { train: false, source: 'unknown' };
  if (parent === undefined && saidNo) return { train: false, source: 'unknown' };
  return own;
}

export function trainsBy({ train, source }: Consent): Trains {
  if (train) return 'yes';
  return source === 'unknown' ? 'unknown' : 'no';
}

/** Where a "no" may come from, as facts name it. */
export const withheldSources = ['key', 'request', 'session', 'unknown'] as const;

/** What a request says of itself; where it says nothing, nothing was said. */
export function ownConsent({ consent }: { readonly consent?: Consent | undefined }): Consent {
  if (consent === undefined) return { train: true, source: 'default' };
  const { train, source } = consent;
  return train ? consent : { train, source: withheldSources.find((known) => known === source) ?? 'request' };
}
