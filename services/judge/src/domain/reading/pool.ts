// Weighs what votes, words and evidence say against each other. In: log-likelihoods of votes and words, the verdict of
// evidence, weights. Out: a verdict. The weights are fitted on labelled next states that neither the words nor the
// phrases of the evidence were made from. Pure.
import { z } from 'zod';
import type { Likelihoods } from '../scored/score.js';
import { labelOf, labels, verdictFrom, type Label } from '../scored/wordings.js';
import type { Verdict } from '../verdict-value.js';

export const poolWeights = z.object({
  votes: z.number(),
  words: z.number(),
  evidence: z.number(),
  satisfied: z.number(),
  correction: z.number(),
});
/** What each source counts, and what satisfied and correction count before anything is heard, against unrelated. */
export type PoolWeights = z.infer<typeof poolWeights>;

export const roleWeights = z.object({ user: poolWeights, tool: poolWeights });
export type RoleWeights = z.infer<typeof roleWeights>;

export interface Heard {
  /** Mean over the votes, in nats a token; nothing without a valid vote. */
  readonly votes: Likelihoods | undefined;
  readonly words: Likelihoods;
  /** Nothing where evidence is silent. */
  readonly evidence: Verdict | undefined;
}

export const sources = [
  'votes',
  'words',
  'evidence',
  'satisfied',
  'correction',
] as const satisfies readonly (keyof PoolWeights)[];

/** What each source says for one verdict; `unrelated` is what votes are measured against. */
export function saidFor(label: Label, { votes, words, evidence }: Heard): Record<keyof PoolWeights, number> {
  return {
    votes: votes === undefined ? 0 : votes[label] - votes.unrelated,
    words: words[label],
    evidence: evidence !== undefined && labelOf[evidence] === label ? 1 : 0,
    satisfied: label === 'satisfied' ? 1 : 0,
    correction: label === 'correction' ? 1 : 0,
  };
}

export function sumsOf(weights: PoolWeights, heard: Heard): number[] {
  return labels.map((label) => {
    const said = saidFor(label, heard);
    return sources.reduce((sum, source) => sum + weights[source] * said[source], 0);
  });
}

export function pool(weights: PoolWeights, heard: Heard): Verdict {
  const found = sumsOf(weights, heard);
  const best = labels[found.indexOf(Math.max(...found))] ?? 'unrelated';
  return verdictFrom[best];
}
