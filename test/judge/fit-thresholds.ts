// Fits what scored votes need for one model: two biases for each wording, then two thresholds for all. In: how likely
// the labelled replies are under each list. Out: an entry of the table of calibrations, by a
// search over a grid.
import {
  scoreOf,
  verdictFromScore,
  type CalibrationEntry,
  type Likelihoods,
  type Thresholds,
  type Verdict,
  type WordingCalibration,
} from '@backtalk/judge';
import { balancedAccuracy } from './balanced-accuracy.js';
import { grouped } from './items.js';

export interface Measured {
  readonly wording: string;
  /** Id of the labelled item. */
  readonly item: string;
  readonly label: Verdict;
  readonly found: Likelihoods;
}

/** Nats a token. */
const biasStep = 0.05;
const biasSteps = 12;
const thresholdSteps = [0, 0.02, 0.04, 0.06, 0.08, 0.1, 0.15, 0.2];
/** Between equals the smaller correction wins: it fits less of what is chance. */
const complexityPrice = 5e-4;

export function fitCalibration(
  measured: readonly Measured[],
  model: string,
  promptDigest: string,
  fittedOn: number,
): CalibrationEntry {
  const wordings = Object.fromEntries(
    [...grouped(measured, ({ wording }) => wording)].map(([wording, own]) => [wording, fitBiases(own)]),
  );
  const { low, high } = fitThresholds(measured, wordings);
  return { model, promptDigest, low, high, wordings, fittedOn };
}

function fitBiases(measured: readonly Measured[]): WordingCalibration {
  const steps = Array.from({ length: 2 * biasSteps + 1 }, (_, at) => at - biasSteps);
  const candidates = steps.flatMap((satisfied) => steps.map((correction) => ({ satisfied, correction })));
  const rated = candidates.map((at) => {
    const bias = { satisfied: rounded(at.satisfied * biasStep), correction: rounded(at.correction * biasStep) };
    const price = complexityPrice * (Math.abs(at.satisfied) + Math.abs(at.correction));
    return { bias, value: accuracy(measured, () => bias, { low: 0, high: 0 }) - price };
  });
  return rated.reduce((best, next) => (next.value > best.value ? next : best)).bias;
}

function fitThresholds(
  measured: readonly Measured[],
  wordings: Readonly<Record<string, WordingCalibration>>,
): Thresholds {
  const biasOf = ({ wording }: Measured) => wordings[wording] ?? { satisfied: 0, correction: 0 };
  const rated = thresholdSteps.flatMap((below) =>
    thresholdSteps.map((high) => {
      const thresholds = { low: -below, high };
      return { thresholds, value: accuracy(measured, biasOf, thresholds) - complexityPrice * 10 * (below + high) };
    }),
  );
  const { low, high } = rated.reduce((best, next) => (next.value > best.value ? next : best)).thresholds;
  // A negative zero would be written as 0 and read as another number.
  return { low: low === 0 ? 0 : low, high };
}

function accuracy(
  measured: readonly Measured[],
  biasOf: (item: Measured) => WordingCalibration,
  thresholds: Thresholds,
): number {
  return balancedAccuracy(
    measured.map((item) => ({
      label: item.label,
      verdict: verdictFromScore(scoreOf(item.found, biasOf(item)), thresholds),
      family: '',
    })),
  );
}

function rounded(value: number): number {
  return Math.round(value * 1000) / 1000;
}
