// Learns from labelled next states which words and signs go with which verdict: a logistic model with a price on large
// weights. In: sets of features with their labels. Out: weights for the judge's file of words. The same each time.
import { featuresOf, labelOf, labels, type Verdict, type WordTable, type WordWeights } from '@backtalk/judge';
import { minimise } from './minimise.js';
import type { Sample } from './sources.js';

export interface Labelled {
  readonly features: ReadonlySet<string>;
  readonly label: Verdict;
  /** Of one hand; within it classes count the same. */
  readonly source?: string;
}

/** What is seen once may be chance. */
const seenMin = 2;
const price = 5;
const classes = labels.length;
/** More digits than these decide nothing. */
const digits = 100;
/** So much decides nothing either, and is not written. */
const weightMin = 0.02;

/** By the sign of its group, what a feature weighs beside the others: what many share a text is cheap, what few do is dear. */
const scales: Readonly<Record<string, number>> = { '~': 0.5, '=': 2, '@': 0.7 };

interface Rows {
  readonly labels: readonly number[];
  readonly shares: Float64Array;
  /** Features of row r stand at starts[r] to starts[r + 1]; 0 is part of every row: what is likely before anything is read. */
  readonly starts: Int32Array;
  readonly columns: Int32Array;
}

export function fitWords(samples: readonly Sample[]): WordTable {
  const labelled = samples.flatMap(({ material, label, source }) =>
    material === undefined ? [] : [{ role: material.next.role, features: featuresOf(material), label, source }],
  );
  return {
    user: fitRole(labelled.filter(({ role }) => role === 'user')),
    tool: fitRole(labelled.filter(({ role }) => role !== 'user')),
  };
}

export function fitRole(labelled: readonly Labelled[]): WordWeights {
  const names = namesIn(labelled);
  const scaleOf = Float64Array.from(['', ...names], (name) => scales[name.charAt(0)] ?? 1);
  const rows = rowsOf(labelled, names);
  const weights = minimise((at) => lossAt(rows, scaleOf, at), scaleOf.length * classes);
  const of = (column: number): [number, number, number] => {
    const at = (one: number) =>
      Math.round((weights[column * classes + one] ?? 0) * (scaleOf[column] ?? 1) * digits) / digits || 0;
    return [at(0), at(1), at(2)];
  };
  const features = names.map((name, at) => [name, of(at + 1)] as const);
  const telling = features.filter(([, all]) => all.some((weight) => Math.abs(weight) >= weightMin));
  return { always: of(0), features: Object.fromEntries(telling) };
}

function namesIn(labelled: readonly Labelled[]): string[] {
  const seen = new Map<string, number>();
  for (const { features } of labelled) for (const name of features) seen.set(name, (seen.get(name) ?? 0) + 1);
  return [...seen].filter(([, count]) => count >= seenMin).map(([name]) => name);
}

function rowsOf(labelled: readonly Labelled[], names: readonly string[]): Rows {
  const columnOf = new Map(names.map((name, at) => [name, at + 1]));
  const found = labelled.map(({ features }) => [
    0,
    ...[...features].map((name) => columnOf.get(name)).filter((column) => column !== undefined),
  ]);
  const starts = new Int32Array(found.length + 1);
  for (const [at, columns] of found.entries()) starts[at + 1] = (starts[at] ?? 0) + columns.length;
  return {
    labels: labelled.map(({ label }) => labels.indexOf(labelOf[label])),
    shares: sharesOf(labelled),
    starts,
    columns: Int32Array.from(found.flat()),
  };
}

/** Within a source classes count the same; a source counts as the root of its size, so that no hand outvotes the rest. */
function sharesOf(labelled: readonly Labelled[]): Float64Array {
  const sizes = new Map<string, number>();
  const count = (key: string) => sizes.set(key, (sizes.get(key) ?? 0) + 1);
  for (const { source = '', label } of labelled) {
    count(source);
    count(`${source} ${String(label)}`);
  }
  const raw = Float64Array.from(labelled, ({ source = '', label }) => {
    const ofClass = sizes.get(`${source} ${String(label)}`) ?? 1;
    return Math.sqrt(sizes.get(source) ?? 1) / ofClass;
  });
  const total = raw.reduce((sum, share) => sum + share, 0);
  return raw.map((share) => (share * labelled.length) / total);
}

/** Negative log-likelihood with the price, and its gradient. */
function lossAt(rows: Rows, scaleOf: Float64Array, weights: Float64Array): { loss: number; gradient: Float64Array } {
  const gradient = new Float64Array(weights.length);
  let squares = 0;
  for (let at = 0; at < weights.length; at += 1) {
    const weight = weights[at] ?? 0;
    gradient[at] = price * weight;
    squares += weight * weight;
  }
  let loss = 0.5 * price * squares;
  const { starts, columns, shares } = rows;
  const sums = new Float64Array(classes);
  const off = new Float64Array(classes);
  for (const [row, label] of rows.labels.entries()) {
    const [from, to, share] = [starts[row] ?? 0, starts[row + 1] ?? 0, shares[row] ?? 0];
    sums.fill(0);
    for (let at = from; at < to; at += 1) {
      const column = columns[at] ?? 0;
      const scale = scaleOf[column] ?? 1;
      for (let one = 0; one < classes; one += 1)
        sums[one] = (sums[one] ?? 0) + scale * (weights[column * classes + one] ?? 0);
    }
    const most = Math.max(...sums);
    const total = sums.reduce((sum, value) => sum + Math.exp(value - most), 0);
    loss -= share * ((sums[label] ?? 0) - most - Math.log(total));
    for (let one = 0; one < classes; one += 1)
      off[one] = share * (Math.exp((sums[one] ?? 0) - most) / total - (one === label ? 1 : 0));
    for (let at = from; at < to; at += 1) {
      const column = columns[at] ?? 0;
      const scale = scaleOf[column] ?? 1;
      for (let one = 0; one < classes; one += 1) {
        const place = column * classes + one;
        gradient[place] = (gradient[place] ?? 0) + scale * (off[one] ?? 0);
      }
    }
  }
  return { loss, gradient };
}
