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

/** Beyond this a wording tells a story. */
export const wordingCharsMax = 200;

/** On one line; what is too long ends with a whole word. */
export function asWording(text: string): string {
  const line = text.replace(/\s+/gu, ' ').trim();
  return line.length <= wordingCharsMax ? line : line.slice(0, wordingCharsMax).replace(/\s\S*$/u, '');
}
