// Reads a next state by its words, and weighs that with the votes: for a model too small to read. In: weights that
// `test/judge` fits, a next state. Out: how likely each verdict is by its words, and the verdict of words and votes
// together. Pure.
import { z } from 'zod';
import type { Verdict } from '../verdict-value.js';
import { labels, verdictFrom, type CastVote, type Label, type Likelihoods, type Reading } from '../verdict.js';
import { featuresOf, type Read } from './features.js';

const perLabel = z.tuple([z.number(), z.number(), z.number()]);
/** By feature, what it adds to `satisfied`, `unrelated` and `correction`; `always` is added to every next state. */
export const wordWeights = z.object({ always: perLabel, features: z.record(z.string(), perLabel) });
export type WordWeights = z.infer<typeof wordWeights>;
/** A person's words and a tool's are two languages. */
export const wordTable = z.object({ user: wordWeights, tool: wordWeights });
export type WordTable = z.infer<typeof wordTable>;

/** What each source counts, and what satisfied and correction count before anything is read, against unrelated. */
export const weighing = z.object({
  votes: z.number(),
  words: z.number(),
  satisfied: z.number(),
  correction: z.number(),
});
export type Weighing = z.infer<typeof weighing>;
export const roleWeights = z.object({ user: weighing, tool: weighing });
export type RoleWeights = z.infer<typeof roleWeights>;

export interface Sources {
  /** Mean over the votes, in nats a token; nothing without a valid vote. */
  readonly votes: Likelihoods | undefined;
  readonly words: Likelihoods;
}

export interface Reader {
  read(read: Read, withVotes: RoleWeights | undefined): Reading;
}

export function createReader(table: WordTable, withoutVotes: RoleWeights): Reader {
  return {
    read: (read, withVotes) => {
      const role = read.next.role === 'user' ? 'user' : 'tool';
      const words = wordLikelihoods(table[role], featuresOf(read));
      const sums = (cast: readonly CastVote[]) => {
        const votes = meanLikelihoods(cast);
        const weights = votes === undefined ? undefined : withVotes?.[role];
        return weights === undefined
          ? sumsOf(withoutVotes[role], { votes: undefined, words })
          : sumsOf(weights, { votes, words });
      };
      return {
        words: { name: 'words', verdict: likeliest(labels.map((label) => words[label])), detail: 'learned' },
        weigh: (cast) => likeliest(sums(cast)),
        odds: (cast) => {
          const [satisfied = 0, unrelated = 0, correction = 0] = logSoftmax(sums(cast));
          return { satisfied, unrelated, correction };
        },
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

/** What each source says for one verdict; `unrelated` is what votes are measured against. */
export function saidFor(label: Label, { votes, words }: Sources): Weighing {
  return {
    votes: votes === undefined ? 0 : votes[label] - votes.unrelated,
    words: words[label],
    satisfied: label === 'satisfied' ? 1 : 0,
    correction: label === 'correction' ? 1 : 0,
  };
}

export function sumsOf(weights: Weighing, sources: Sources): number[] {
  return labels.map((label) => {
    const said = saidFor(label, sources);
    return (
      weights.votes * said.votes +
      weights.words * said.words +
      weights.satisfied * said.satisfied +
      weights.correction * said.correction
    );
  });
}

export function weigh(weights: Weighing, sources: Sources): Verdict {
  return likeliest(sumsOf(weights, sources));
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

/** Nothing without a vote that has them. */
export function meanLikelihoods(votes: readonly CastVote[]): Likelihoods | undefined {
  const found = votes.flatMap((vote) => (vote.valid && vote.likelihoods !== undefined ? [vote.likelihoods] : []));
  if (found.length === 0) return undefined;
  const mean = (label: Label) => found.reduce((sum, one) => sum + one[label], 0) / found.length;
  return { satisfied: mean('satisfied'), unrelated: mean('unrelated'), correction: mean('correction') };
}
