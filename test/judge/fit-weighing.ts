// Fits how much words count, and satisfied and correction before anything is read. In: what words say of labelled next states that
// they were not learned from. Out: weights. Plain descent on the likelihood of the labels, classes counting the same, with a small
// price on large weights.
import {
  labelOf,
  labels,
  logSoftmax,
  saidFor,
  sumsOf,
  weigh,
  type Likelihoods,
  type Verdict,
  type Weighing,
} from '@backtalk/judge';

export interface LabelledWords {
  readonly words: Likelihoods;
  readonly label: Verdict;
}

const steps = 300;
const rate = 0.3;
const price = 0.01;
/** Of satisfied next states, so many may be taken for corrections. */
const blamedShareMax = 0.1;
const correctionMin = -3;

/** Nothing is believed before the first item. */
const none: Weighing = { words: 0, satisfied: 0, correction: 0 };

export function fitWeighing(items: readonly LabelledWords[]): Weighing {
  let weights = none;
  for (let at = 0; at < steps; at += 1) {
    const gradient = gradientAt(items, weights);
    weights = mapped((source) => weights[source] - rate * (gradient[source] + price * weights[source]));
  }
  // More digits than were measured would only look exact.
  return bounded(
    items,
    mapped((source) => Math.round(weights[source] * 100) / 100),
  );
}

/** A correction that is missed can be said again, one that was none is taught: in doubt it is neutral. */
function bounded(items: readonly LabelledWords[], weights: Weighing): Weighing {
  const satisfied = items.filter(({ label }) => label === 1);
  const blamed = (at: Weighing) => satisfied.filter(({ words }) => weigh(at, words) === -1).length;
  let found = weights;
  while (blamed(found) > blamedShareMax * satisfied.length && found.correction > correctionMin) {
    found = { ...found, correction: Math.round(found.correction * 100 - 5) / 100 };
  }
  return found;
}

function gradientAt(items: readonly LabelledWords[], weights: Weighing): Weighing {
  const counts = new Map<Verdict, number>();
  for (const { label } of items) counts.set(label, (counts.get(label) ?? 0) + 1);
  let sums = none;
  for (const { words, label } of items) {
    const share = 1 / (labels.length * (counts.get(label) ?? 1));
    const found = logSoftmax(sumsOf(weights, words));
    for (const [at, one] of labels.entries()) {
      const off = share * (Math.exp(found[at] ?? 0) - (labelOf[label] === one ? 1 : 0));
      const said = saidFor(one, words);
      const before = sums;
      sums = mapped((source) => before[source] + off * said[source]);
    }
  }
  return sums;
}

function mapped(of: (source: keyof Weighing) => number): Weighing {
  return { words: of('words'), satisfied: of('satisfied'), correction: of('correction') };
}
