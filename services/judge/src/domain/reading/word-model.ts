// Learns from labelled next states which words and signs go with which verdict: a logistic model with a price on large
// weights. In: sets of features with their labels. Out: how likely each verdict is for another set. Pure, and the same
// each time: it is fitted from the labelled set at the start, in a fraction of a second, so it is never older than that.
import type { Likelihoods } from '../scored/score.js';
import { labelOf, labels } from '../scored/wordings.js';
import type { Verdict } from '../verdict-value.js';

export interface Labelled {
  readonly features: ReadonlySet<string>;
  readonly label: Verdict;
}

export interface WordModel {
  /** Natural logarithms of probabilities that sum to 1. */
  logprobs(features: ReadonlySet<string>): Likelihoods;
}

/** What is seen once may be chance. */
const seenMin = 2;
const price = 3;
const steps = 120;
const powerSteps = 15;
const classes = labels.length;
/** Part of every item: what is likely before anything is read. */
const always = '';

interface Row {
  readonly places: readonly number[];
  readonly label: number;
  /** Classes count the same, however many items they have. */
  readonly share: number;
}

export function fitWordModel(labelled: readonly Labelled[]): WordModel {
  const places = placesOf(labelled);
  const rows = rowsOf(labelled, places);
  const weights = descend(rows, places.size);
  return {
    logprobs: (features) => {
      const found = logSoftmax(sums(weights, placesIn(features, places)));
      const [satisfied = 0, unrelated = 0, correction = 0] = found;
      return { satisfied, unrelated, correction };
    },
  };
}

function placesOf(labelled: readonly Labelled[]): Map<string, number> {
  const seen = new Map<string, number>();
  for (const { features } of labelled) for (const name of features) seen.set(name, (seen.get(name) ?? 0) + 1);
  const kept = [...seen].filter(([, count]) => count >= seenMin).map(([name]) => name);
  return new Map([always, ...kept].map((name, place) => [name, place]));
}

function placesIn(features: ReadonlySet<string>, places: ReadonlyMap<string, number>): number[] {
  return [always, ...features].map((name) => places.get(name)).filter((place) => place !== undefined);
}

function rowsOf(labelled: readonly Labelled[], places: ReadonlyMap<string, number>): Row[] {
  const counts = new Map<Verdict, number>();
  for (const { label } of labelled) counts.set(label, (counts.get(label) ?? 0) + 1);
  return labelled.map(({ features, label }) => ({
    places: placesIn(features, places),
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
    const ahead = weights.map((weight, place) => weight + momentum * (weight - (before[place] ?? 0)));
    const gradient = gradientAt(rows, ahead);
    before = weights;
    weights = ahead.map((weight, place) => weight - step * ((gradient[place] ?? 0) + price * weight));
  }
  return weights;
}

function gradientAt(rows: readonly Row[], weights: Float64Array): Float64Array {
  const gradient = new Float64Array(weights.length);
  for (const { places, label, share } of rows) {
    const found = logSoftmax(sums(weights, places));
    for (const [one, logprob] of found.entries()) {
      const off = share * (Math.exp(logprob) - (one === label ? 1 : 0));
      for (const place of places) gradient[place * classes + one] = (gradient[place * classes + one] ?? 0) + off;
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
    for (const { places } of rows) {
      const sum = places.reduce((total, place) => total + (vector[place] ?? 0), 0);
      for (const place of places) next[place] = (next[place] ?? 0) + sum;
    }
    length = Math.hypot(...next);
    vector = next.map((value) => value / length);
  }
  return length;
}

function sums(weights: Float64Array, places: readonly number[]): number[] {
  return labels.map((_, one) => places.reduce((sum, place) => sum + (weights[place * classes + one] ?? 0), 0));
}

export function logSoftmax(values: readonly number[]): number[] {
  const most = Math.max(...values);
  const total = Math.log(values.reduce((sum, value) => sum + Math.exp(value - most), 0)) + most;
  return values.map((value) => value - total);
}
