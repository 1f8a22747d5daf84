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

/** A longer one is no word: Chinese, Japanese and Thai write none between words. */
const wordCharsMax = 30;

/** On one line; what is too long ends with a whole word, where words are told apart by spaces. */
export function asWording(text: string): string {
  const line = text.replace(/\s+/gu, ' ').trim();
  if (line.length <= wordingCharsMax) return line;
  // Never half of a character that takes two places.
  const cut = line.slice(0, wordingCharsMax).replace(/[\uD800-\uDBFF]$/u, '');
  const space = cut.lastIndexOf(' ');
  return space < wordingCharsMax - wordCharsMax ? cut : cut.slice(0, space);
}
