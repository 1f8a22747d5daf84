// Fits how much votes, words and evidence count against each other. In: what each said of labelled next states that
// none of them was made from. Out: weights. Pure: plain descent on the likelihood of the labels, classes counting the
// same, with a small price on large weights.
import { logSoftmax } from '../reading/word-model.js';
import { saidFor, sources, sumsOf, type Heard, type PoolWeights } from '../reading/pool.js';
import { labelOf, labels } from '../scored/wordings.js';
import type { Verdict } from '../verdict-value.js';

export interface HeardOf {
  readonly heard: Heard;
  readonly label: Verdict;
}

const steps = 2_000;
const rate = 0.3;
const price = 0.01;

/** Nobody starts with an opinion on which source is right. */
const none: PoolWeights = { votes: 0, words: 0, evidence: 0, satisfied: 0, correction: 0 };

export function fitPool(items: readonly HeardOf[]): PoolWeights {
  let weights = none;
  for (let at = 0; at < steps; at += 1) {
    const gradient = gradientAt(items, weights);
    weights = mapped((source) => weights[source] - rate * (gradient[source] + price * weights[source]));
  }
  // More digits than were measured would only look exact.
  return mapped((source) => Math.round(weights[source] * 100) / 100);
}

function gradientAt(items: readonly HeardOf[], weights: PoolWeights): PoolWeights {
  const counts = new Map<Verdict, number>();
  for (const { label } of items) counts.set(label, (counts.get(label) ?? 0) + 1);
  const sums: Record<keyof PoolWeights, number> = { ...none };
  for (const { heard, label } of items) {
    const share = 1 / (labels.length * (counts.get(label) ?? 1));
    const found = logSoftmax(sumsOf(weights, heard));
    for (const [place, one] of labels.entries()) {
      const off = share * (Math.exp(found[place] ?? 0) - (labelOf[label] === one ? 1 : 0));
      const said = saidFor(one, heard);
      for (const source of sources) sums[source] += off * said[source];
    }
  }
  return sums;
}

function mapped(of: (source: keyof PoolWeights) => number): PoolWeights {
  return {
    votes: of('votes'),
    words: of('words'),
    evidence: of('evidence'),
    satisfied: of('satisfied'),
    correction: of('correction'),
  };
}
