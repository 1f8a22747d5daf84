// From likelihoods to a vote. In: how likely a reply is as the next entry of each list, and the calibration of the
// wording. Out: one number (above 0: satisfied leads; below 0: correction leads; 0: unrelated leads) and the verdict
// that two thresholds make of it. Pure.
import type { Verdict } from '../verdict-value.js';
import type { Likelihoods } from '../verdict.js';

/** Nats a token, relative to `unrelated`. */
export interface WordingCalibration {
  readonly satisfied: number;
  readonly correction: number;
}

export interface Thresholds {
  readonly low: number;
  readonly high: number;
}

/** Mean nats a token: long replies would otherwise be decided by a single strange word. */
export function likelihoodOf(logprobs: readonly number[]): number {
  return logprobs.reduce((sum, value) => sum + value, 0) / Math.max(1, logprobs.length);
}

export function scoreOf(found: Likelihoods, bias: WordingCalibration): number {
  const satisfied = found.satisfied + bias.satisfied - found.unrelated;
  const correction = found.correction + bias.correction - found.unrelated;
  if (satisfied <= 0 && correction <= 0) return 0;
  return satisfied >= correction ? satisfied : -correction;
}

export function withBias(found: Likelihoods, bias: WordingCalibration): Likelihoods {
  return {
    satisfied: found.satisfied + bias.satisfied,
    unrelated: found.unrelated,
    correction: found.correction + bias.correction,
  };
}

export function verdictFromScore(score: number, { low, high }: Thresholds): Verdict {
  if (score < low) return -1;
  return score > high ? 1 : 0;
}
