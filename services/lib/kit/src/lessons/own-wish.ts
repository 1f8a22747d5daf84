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

/** A longer one is no word: some scripts, as Chinese, Thai and Khmer, write no space between words. */
const wordCharsMax = 30;
const words = new Intl.Segmenter('en', { granularity: 'word' });

/** On one line; what is too long ends with a whole word. */
export function asWording(text: string): string {
  return wholeWords(text.replace(/\s+/gu, ' ').trim(), wordingCharsMax);
}

/** As many words of a line as have room. */
export function wholeWords(line: string, charsMax: number): string {
  if (line.length <= charsMax) return line;
  const space = line.slice(0, charsMax).lastIndexOf(' ');
  if (space >= charsMax - wordCharsMax) return line.slice(0, space);
  const start = words.segment(line.slice(0, charsMax + wordCharsMax)).containing(charsMax)?.index ?? 0;
  // A word longer than words are is cut, but never half of a character that takes two places.
  const end = charsMax - start <= wordCharsMax ? start : charsMax;
  return line
    .slice(0, end)
    .replace(/[\uD800-\uDBFF]$/u, '')
    .trimEnd();
}
