// How often a judge is right, each class counting the same. In: pairs of truth and verdict. Out: the mean of the
// classes' recalls, and an interval by bootstrap. Chance comes from a seed.
import type { Verdict } from '@backtalk/judge';
import { grouped } from './items.js';

export interface Pair {
  readonly label: Verdict;
  readonly verdict: Verdict;
  /** Pairs of one family say nearly the same, and are drawn together. */
  readonly family: string;
}

export interface Interval {
  readonly low: number;
  readonly high: number;
}

const classes: readonly Verdict[] = [-1, 0, 1];
const drawsDefault = 1_000;

export function balancedAccuracy(pairs: readonly Pair[]): number {
  const recalls = classes.flatMap((label) => {
    const own = pairs.filter((pair) => pair.label === label);
    return own.length === 0 ? [] : [own.filter(({ verdict }) => verdict === label).length / own.length];
  });
  return recalls.length === 0 ? 0 : recalls.reduce((sum, recall) => sum + recall, 0) / recalls.length;
}

/** 95 % of resampled sets lie within; families are drawn, because items of one family are not independent. */
export function bootstrapInterval(pairs: readonly Pair[], draws = drawsDefault, seed = 1): Interval {
  const families = [...grouped(pairs, ({ family }) => family).values()];
  const random = seededRandom(seed);
  const found = Array.from({ length: draws }, () => {
    const drawn = families.flatMap(() => families[Math.floor(random() * families.length)] ?? []);
    return balancedAccuracy(drawn);
  }).sort((a, b) => a - b);
  return { low: at(found, 0.025), high: at(found, 0.975) };
}

/** Mulberry32: small, and the same on every machine. */
function seededRandom(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296;
  };
}

function at(sorted: readonly number[], share: number): number {
  return sorted[Math.min(sorted.length - 1, Math.floor(share * sorted.length))] ?? 0;
}
