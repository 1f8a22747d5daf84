// Relates wishes by their words alone: sure of few, and `different` where it is not sure. It merges or opposes only what asks for nearly the
// same things, so that no wish is lost in another.
import { clip } from '@backtalk/kit';

import { lengthMeasures, wishCharsMax, wishFeatures, type WishFeatures } from './wish-features.js';
import type { Relate, WishRelation, WishRelations } from './wish-relation.js';

/** Of all that two wishes speak of, the share that both must speak of. */
const sharedFrom = 0.75;
/** Where something stands, or that nothing else does, says less than what it is. */
const lesser = new Set(['~place', '=only']);
const lesserWeight = 0.5;
/** "You used tables", "there is no list in that", "your answer has headings". English alone. */
const report =
  /^(?:(?:no|hey|but|and|again|still|sorry),? )?(?:you(?:'ve| have)? (?:just |still |again |only |never )?(?:\p{L}{2,20}ed|wrote|written|used|gave|made|put|did|got|forgot|left|were|are|keep|kept)\b|there(?:'s| is| are| was| were) |(?:that|this|it|(?:this|that|your|the) (?:one|answer|reply|response|message))(?: still)? (?:was|is|has|had|came|comes|uses|used) )/u;
const askedAllTheSame = /\b(?:too|should|shall|must|need|want|asked)\b/u;
const wordCharsMin = 4;
const endingCharsMax = 3;
/** "Compare", "comparisons"; and "colourful", "colourless". */
const stemCharsMin = 6;
const suffixCharsMax = 5;
/** What makes no other word, in the languages whose words are known here: in others an ending may say "without", or "not". */
const inflections = new Set(" s es 's ed d ing ly e en n em er ern a o as os i ar ir x st t".split(' '));

export const lexicalRelations: WishRelations = { among: () => Promise.resolve(wordRelations()) };

/** It keeps what it has read of each wish: for one batch. */
export function wordRelations(): Relate {
  const known = new Map<string, WishFeatures>();
  const featuresOf = (wish: string): WishFeatures => {
    const features = known.get(wish) ?? wishFeatures(wish);
    known.set(wish, features);
    return features;
  };
  return (a, b) => relationBetween(a, b, featuresOf);
}

export function relateByWords(a: string, b: string): WishRelation {
  return relationBetween(a, b, wishFeatures);
}

/** What was done wrong is said with the words for what is wanted, or for its contrary: beside a wish nothing is sure then. */
function relationBetween(a: string, b: string, featuresOf: (wish: string) => WishFeatures): WishRelation {
  if (saysWhatWas(a) !== saysWhatWas(b)) return 'different';
  const relation = relationOf(featuresOf(a), featuresOf(b));
  return relation === 'opposite' && saysWhatWas(a) ? 'different' : relation;
}

function saysWhatWas(wish: string): boolean {
  const sentences = clip(wish, wishCharsMax)
    .toLowerCase()
    .replaceAll('\u2019', "'")
    .split(/[.!?\u2026\n]+/u);
  return sentences.some((sentence) => report.test(sentence.trim()) && !askedAllTheSame.test(sentence));
}

function relationOf(a: WishFeatures, b: WishFeatures): WishRelation {
  const { pairs, shared, spokenOf } = comparison(a, b);
  if (spokenOf === 0 || shared < sharedFrom * spokenOf) return 'different';
  const verdicts = pairs.map(verdict);
  const isWhole = spokenOf - shared < 1;
  if (verdicts.includes('different')) return 'different';
  if (pairs.some(([, , , isSure]) => !isSure)) return 'different';
  if (verdicts.includes('opposite')) return 'opposite';
  // One says how short, the other only that it is short.
  return isWhole && (sizesOf(a).join() === sizesOf(b).join() || pairs.some(([key]) => key.startsWith('#')))
    ? 'same'
    : 'different';
}

/** Not sure where the two words are only alike. */
type Pair = readonly [key: string, valueOfA: string, valueOfB: string, isSure: boolean];

interface Comparison {
  readonly pairs: readonly Pair[];
  readonly shared: number;
  readonly spokenOf: number;
}

/** What both speak of, with what each says of it; length and counts of it are one thing. */
function comparison(a: WishFeatures, b: WishFeatures): Comparison {
  const pairs: Pair[] = [];
  let [shared, spokenOf] = [0, 0];
  const rest = new Set(b.keys());
  for (const [key, value] of a) {
    if (isSize(key)) continue;
    const other = [...rest].find((candidate) => sameWord(key, candidate));
    spokenOf += weightOf(key);
    if (other === undefined) continue;
    rest.delete(other);
    shared += weightOf(key);
    pairs.push([key, value, b.get(other) ?? '', isInflected(key, other)]);
  }
  for (const key of rest) if (!isSize(key)) spokenOf += weightOf(key);
  const [sizesA, sizesB] = [sizesOf(a), sizesOf(b)];
  if (sizesA.length + sizesB.length > 0) spokenOf += 1;
  if (sizesA.length > 0 && sizesB.length > 0) {
    shared += 1;
    pairs.push(...sizePairs(a, b, sizesA, sizesB));
  }
  return { pairs, shared, spokenOf };
}

function sizePairs(a: WishFeatures, b: WishFeatures, sizesA: readonly string[], sizesB: readonly string[]): Pair[] {
  const both = sizesA.filter((key) => key.startsWith('#') && sizesB.includes(key));
  if (both.length > 0) return both.map((key) => [key, a.get(key) ?? '', b.get(key) ?? '', true]);
  return [['~length', lengthOf(a, sizesA), lengthOf(b, sizesB), true]];
}

/** A bound from below asks for more; any other count for less. */
function lengthOf(features: WishFeatures, sizes: readonly string[]): string {
  const count = sizes.find((key) => key.startsWith('#'));
  if (count === undefined) return features.get('~length') ?? '';
  return features.get(count)?.startsWith('min') === true ? '+' : '-';
}

function sizesOf(features: WishFeatures): string[] {
  return [...features.keys()].filter(isSize);
}

function isSize(key: string): boolean {
  return key === '~length' || lengthMeasures.has(key);
}

function weightOf(key: string): number {
  return lesser.has(key) ? lesserWeight : 1;
}

function verdict([key, one, other]: Pair): WishRelation {
  if (one === other) return 'same';
  if (key.startsWith('#')) return countsVerdict(one, other);
  if (key.startsWith('~')) return valuesVerdict(one, other);
  return [one, other].includes('+') ? 'opposite' : 'different';
}

function valuesVerdict(one: string, other: string): WishRelation {
  if (!/^[!<]/.test(one) && !/^[!<]/.test(other)) return 'opposite';
  // "Not in French" leaves room for German.
  return one === other.slice(1) || other === one.slice(1) ? 'opposite' : 'different';
}

function countsVerdict(one: string, other: string): WishRelation {
  const [boundOne = '', countOne = ''] = one.split(' ');
  const [boundOther = '', countOther = ''] = other.split(' ');
  if (one.includes(',') || other.includes(',')) return 'different';
  if (boundOne.startsWith('!') || boundOther.startsWith('!'))
    return one.replace('!', '') === other.replace('!', '') ? 'opposite' : 'different';
  const mins = [boundOne, boundOther].filter((bound) => bound === 'min').length;
  if (mins === 0) return countOne === countOther ? 'same' : 'opposite';
  if (mins === 2) return 'different';
  const [least, most] =
    boundOne === 'min' ? [Number(countOne), Number(countOther)] : [Number(countOther), Number(countOne)];
  return least > most ? 'opposite' : 'different';
}

/** The same word, or one in another form. */
function isInflected(a: string, b: string): boolean {
  if (a === b) return true;
  const common = [...a].findIndex((letter, index) => letter !== b[index]);
  const stem = common < 0 ? a.length : common;
  return stem >= wordCharsMin && inflections.has(a.slice(stem)) && inflections.has(b.slice(stem));
}

/** Alike but for an ending ("emoji", "emojis"). */
function sameWord(a: string, b: string): boolean {
  if (a === b) return true;
  const [short, long] = a.length <= b.length ? [a, b] : [b, a];
  if (/^[~=]/.test(a) || /^[~=]/.test(b) || a.startsWith('#') !== b.startsWith('#')) return false;
  const common = [...short].findIndex((letter, index) => letter !== long[index]);
  if (common >= stemCharsMin && long.length - common <= suffixCharsMax) return true;
  const stem = short.replace(/[ey]$/, '');
  return stem.length >= wordCharsMin && long.startsWith(stem) && long.length - stem.length <= endingCharsMax;
}
