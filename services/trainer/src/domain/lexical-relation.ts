// Relates wishes by their words alone: sure of few, and `different` where it is not sure. It merges or opposes only what asks for nearly the
// same things, so that no wish is lost in another.
import { wishFeatures, type WishFeatures } from './wish-features.js';
import type { WishRelation, WishRelations } from './wish-relation.js';

/** Of all that two wishes speak of, the share that both must speak of. */
const sharedFrom = 0.75;
const wordCharsMin = 4;
const endingCharsMax = 3;

export const lexicalRelations: WishRelations = {
  among: (wishes) => {
    const known = new Map(wishes.map((wish) => [wish, wishFeatures(wish)]));
    const featuresOf = (wish: string): WishFeatures => known.get(wish) ?? wishFeatures(wish);
    return Promise.resolve((a, b) => relationOf(featuresOf(a), featuresOf(b)));
  },
};

export function relateByWords(a: string, b: string): WishRelation {
  return relationOf(wishFeatures(a), wishFeatures(b));
}

function relationOf(a: WishFeatures, b: WishFeatures): WishRelation {
  if (a.size === 0 || b.size === 0) return 'different';
  const pairs = pairsOf(a, b);
  const sizes = sizesApart(a, b, pairs);
  const spokenOf = a.size + b.size - pairs.length - sizes;
  if (pairs.length < sharedFrom * spokenOf) return 'different';
  const clashes = pairs.filter(([one, other]) => one !== other);
  if (clashes.length > 0) return clashes.every(excludes) ? 'opposite' : 'different';
  // One says how short, the other only that it is short.
  return sizes > 0 && !pairs.some(([, , key]) => key.startsWith('#')) ? 'different' : 'same';
}

type Pair = readonly [valueOfA: string, valueOfB: string, key: string];

/** What both speak of, with what each says of it. */
function pairsOf(a: WishFeatures, b: WishFeatures): Pair[] {
  return [...a].flatMap(([key, value]): Pair[] => {
    const other = [...b.keys()].find((candidate) => sameWord(key, candidate));
    return other === undefined ? [] : [[value, b.get(other) ?? '', key]];
  });
}

/** Length and counts say how much: where both wishes speak of one of them, the other one in only one of them is no further wish. */
function sizesApart(a: WishFeatures, b: WishFeatures, pairs: readonly Pair[]): number {
  const isSize = (key: string): boolean => key === '~length' || key.startsWith('#');
  if (!pairs.some(([, , key]) => isSize(key))) return 0;
  const inBoth = pairs.filter(([, , key]) => isSize(key)).length;
  return [...a.keys(), ...b.keys()].filter(isSize).length - 2 * inBoth;
}

/** "Not in French" leaves room for German. */
function excludes([one, other, key]: Pair): boolean {
  if (key !== '~language') return true;
  const positive = !one.startsWith('-') && !other.startsWith('-');
  return positive || one.replace('-', '') === other.replace('-', '');
}

/** The same but for an ending ("emoji", "emojis"). */
function sameWord(a: string, b: string): boolean {
  if (a === b) return true;
  const [short, long] = a.length <= b.length ? [a, b] : [b, a];
  const stem = short.replace(/[ey]$/, '');
  return stem.length >= wordCharsMin && long.startsWith(stem) && long.length - stem.length <= endingCharsMax;
}
