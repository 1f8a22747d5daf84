// Learns from labelled next states which words and signs go with which verdict: a logistic model with a price on large
// weights. In: sets of features with their labels. Out: weights for the judge's file of words. The same each time.
import {
  featuresOf,
  labelOf,
  labels,
  logSoftmax,
  type Verdict,
  type WordTable,
  type WordWeights,
} from '@backtalk/judge';
import { materialOfItem, type LabelledItem } from './items.js';

export interface Labelled {
  readonly features: ReadonlySet<string>;
  readonly label: Verdict;
}

/** What is seen once may be chance. */
const seenMin = 2;
const price = 5;
const steps = 120;
const powerSteps = 15;
const classes = labels.length;
/** More digits than these decide nothing. */
const digits = 1000;

interface Row {
  /** Of its features, among all; 0 is part of every row: what is likely before anything is read. */
  readonly columns: readonly number[];
  readonly label: number;
  /** Classes count the same, however many items they have. */
  readonly share: number;
}

export function fitWords(items: readonly LabelledItem[]): WordTable {
  const ofRole = (role: LabelledItem['role']) =>
    fitRole(
      items
        .filter((item) => item.role === role)
        .map((item) => ({ features: featuresOf(materialOfItem(item)), label: item.label })),
    );
  return { user: ofRole('user'), tool: ofRole('tool') };
}

export function fitRole(labelled: readonly Labelled[]): WordWeights {
  const names = namesIn(labelled);
  const weights = descend(rowsOf(labelled, names), names.length + 1);
  const of = (column: number): [number, number, number] => {
    const at = (one: number) => Math.round((weights[column * classes + one] ?? 0) * digits) / digits;
    return [at(0), at(1), at(2)];
  };
  const features = names.map((name, at) => [name, of(at + 1)] as const);
  return { always: of(0), features: Object.fromEntries(features) };
}

function namesIn(labelled: readonly Labelled[]): string[] {
  const seen = new Map<string, number>();
  for (const { features } of labelled) for (const name of features) seen.set(name, (seen.get(name) ?? 0) + 1);
  return [...seen].filter(([, count]) => count >= seenMin).map(([name]) => name);
}

function rowsOf(labelled: readonly Labelled[], names: readonly string[]): Row[] {
  const columnOf = new Map(names.map((name, at) => [name, at + 1]));
  const counts = new Map<Verdict, number>();
  for (const { label } of labelled) counts.set(label, (counts.get(label) ?? 0) + 1);
  return labelled.map(({ features, label }) => ({
    columns: [0, ...[...features].map((name) => columnOf.get(name)).filter((column) => column !== undefined)],
    label: labels.indexOf(labelOf[label]),
    share: labelled.length / (classes * (counts.get(label) ?? 1)),
  }));
}

/** Nesterov's descent with a step that the largest curvature allows: no rate to tune. */
function descend(rows: readonly Row[], size: number): Float64Array {
  const shareMax = Math.max(...rows.map(({ share }) => share), 1);
  const step = 1 / (0.5 * shareMax * largestCurvature(rows, size) + price);
  let weights: Float64Array = new Float64Array(size * classes);
  let before = weights;
  for (let at = 0; at < steps; at += 1) {
    const momentum = at / (at + 3);
    const ahead = weights.map((weight, column) => weight + momentum * (weight - (before[column] ?? 0)));
    const gradient = gradientAt(rows, ahead);
    before = weights;
    weights = ahead.map((weight, column) => weight - step * ((gradient[column] ?? 0) + price * weight));
  }
  return weights;
}

function gradientAt(rows: readonly Row[], weights: Float64Array): Float64Array {
  const gradient = new Float64Array(weights.length);
  for (const { columns, label, share } of rows) {
    const sums = labels.map((_, one) =>
      columns.reduce((sum, column) => sum + (weights[column * classes + one] ?? 0), 0),
    );
    for (const [one, logprob] of logSoftmax(sums).entries()) {
      const off = share * (Math.exp(logprob) - (one === label ? 1 : 0));
      for (const column of columns) gradient[column * classes + one] = (gradient[column * classes + one] ?? 0) + off;
    }
  }
  return gradient;
}

/** The largest eigenvalue of the features' Gram matrix, by power iteration. */
function largestCurvature(rows: readonly Row[], size: number): number {
  let vector: Float64Array = new Float64Array(size).fill(1 / Math.sqrt(size));
  let length = 1;
  for (let at = 0; at < powerSteps; at += 1) {
    const next = new Float64Array(size);
    for (const { columns } of rows) {
      const sum = columns.reduce((total, column) => total + (vector[column] ?? 0), 0);
      for (const column of columns) next[column] = (next[column] ?? 0) + sum;
    }
    length = Math.hypot(...next);
    vector = next.map((value) => value / length);
  }
  return length;
}
