// Reads a next state by its words. In: weights that `test/judge` fits, a next state. Out: the verdict of its words, and how likely
// each verdict is by them. Pure.
import { z } from 'zod';
import type { Verdict } from '../verdict-value.js';
import { labels, verdictFrom, type Label, type Likelihoods, type Reading } from '../verdict.js';
import { featuresOf, type Read } from './features.js';

const perLabel = z.tuple([z.number(), z.number(), z.number()]);
/** By feature, what it adds to `satisfied`, `unrelated` and `correction`; `always` is added to every next state. */
export const wordWeights = z.object({ always: perLabel, features: z.record(z.string(), perLabel) });
export type WordWeights = z.infer<typeof wordWeights>;
/** A person's words and a tool's are two languages. */
export const wordTable = z.object({ user: wordWeights, tool: wordWeights });
export type WordTable = z.infer<typeof wordTable>;

/** What words count, and what satisfied and correction count before anything is read, against unrelated. */
const weighing = z.object({ words: z.number(), satisfied: z.number(), correction: z.number() });
export type Weighing = z.infer<typeof weighing>;
export const roleWeights = z.object({ user: weighing, tool: weighing });
export type RoleWeights = z.infer<typeof roleWeights>;

export interface Reader {
  read(read: Read): Reading;
}

export function createReader(table: WordTable, weights: RoleWeights): Reader {
  return {
    read: (read) => {
      const role = read.next.role === 'user' ? 'user' : 'tool';
      const words = wordLikelihoods(table[role], featuresOf(read));
      const sums = sumsOf(weights[role], words);
      const [satisfied = 0, unrelated = 0, correction = 0] = logSoftmax(sums);
      return {
        words: { name: 'words', verdict: likeliest(labels.map((label) => words[label])), detail: 'learned' },
        verdict: likeliest(sums),
        odds: { satisfied, unrelated, correction },
      };
    },
  };
}

/** Natural logarithms of probabilities that sum to 1. */
export function wordLikelihoods({ always, features }: WordWeights, found: ReadonlySet<string>): Likelihoods {
  const known = [...found].flatMap((name) => (Object.hasOwn(features, name) ? [features[name] ?? always] : []));
  const sums = labels.map((_, at) => known.reduce((sum, weights) => sum + (weights[at] ?? 0), always[at] ?? 0));
  const [satisfied = 0, unrelated = 0, correction = 0] = logSoftmax(sums);
  return { satisfied, unrelated, correction };
}

/** What is weighed for one verdict. */
export function saidFor(label: Label, words: Likelihoods): Weighing {
  return {
    words: words[label],
    satisfied: label === 'satisfied' ? 1 : 0,
    correction: label === 'correction' ? 1 : 0,
  };
}

export function sumsOf(weights: Weighing, words: Likelihoods): number[] {
  return labels.map((label) => {
    const said = saidFor(label, words);
    return weights.words * said.words + weights.satisfied * said.satisfied + weights.correction * said.correction;
  });
}

export function weigh(weights: Weighing, words: Likelihoods): Verdict {
  return likeliest(sumsOf(weights, words));
}

export function logSoftmax(values: readonly number[]): number[] {
  const most = Math.max(...values);
  const total = Math.log(values.reduce((sum, value) => sum + Math.exp(value - most), 0)) + most;
  return values.map((value) => value - total);
}

/** Of equals the first of `labels`. */
function likeliest(values: readonly number[]): Verdict {
  return verdictFrom[labels[values.indexOf(Math.max(...values))] ?? 'unrelated'];
}
