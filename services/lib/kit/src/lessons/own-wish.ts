// What a judged turn's own user asked for. In: a judgement. Out: their words, which lessons are made of: another person's feedback adds
// none to them and takes none away. Pure.
import type { TurnJudged } from '@backtalk/proto/facts';

export interface OwnWords {
  /** Empty where the turn's user asked for nothing. */
  readonly text: string;
  readonly stands: boolean;
}

export interface OwnWish extends OwnWords {
  readonly bare: boolean;
}

export function ownWish({
  wish,
  giver,
  user,
  hint,
  stands,
  bare,
}: Pick<TurnJudged, 'wish' | 'giver' | 'user' | 'hint' | 'stands' | 'bare'>): OwnWish {
  if (wish !== undefined) return wish;
  // The hint is its giver's.
  return giver === '' || giver === user ? { text: hint, stands, bare } : { text: '', stands: false, bare: false };
}
