// Figures of answers that drift, and what is done about it. In: what a candidate and the versions beside it answered to the probe questions,
// and what a step measured of the version that serves. Out: why the candidate is held, or why what serves is rolled back. Pure. A lesson may
// change how sure and how long answers are; the bounds are far beyond what one does.
import type { GateVerdict } from './gate.js';

export interface DriftLimits {
  /** So many times less or more is drift: of entropy, of length, and of the entropy of what serves. */
  readonly entropyFactor: number;
  readonly lengthFactor: number;
  readonly rollbackFactor: number;
}

/** Of one version's answers to the probe questions. */
export interface AnswerFigures {
  readonly version: string;
  /** Mean −log p of the sampled tokens: an estimate of the entropy, nats a token. Undefined where the engine gives no logprobs. */
  readonly entropy: number | undefined;
  /** Geometric mean of the answers' tokens. */
  readonly tokens: number;
}

type Measure = 'entropy' | 'length' | 'served_entropy';

interface Guard {
  readonly measure: Measure;
  readonly action: 'hold' | 'roll_back';
  readonly factorOf: (limits: DriftLimits) => number;
  readonly says: string;
}

const guards: Readonly<Record<Measure, Guard>> = {
  entropy: {
    measure: 'entropy',
    action: 'hold',
    factorOf: ({ entropyFactor }) => entropyFactor,
    says: 'nats a token of its answers',
  },
  length: {
    measure: 'length',
    action: 'hold',
    factorOf: ({ lengthFactor }) => lengthFactor,
    says: 'tokens an answer',
  },
  served_entropy: {
    measure: 'served_entropy',
    action: 'roll_back',
    factorOf: ({ rollbackFactor }) => rollbackFactor,
    says: 'of the entropy that the base has on the answers that were trained on',
  },
};

/**
 * Holds a candidate whose answers are far less or more sure than those of what serves or of the base, or far shorter or longer than those of
 * what serves: over many versions a lesson may make answers as short as it likes, and no single step does.
 *
 * @param others what serves first, then the base where that is another
 */
export function judgeDrift(
  candidate: AnswerFigures,
  others: readonly AnswerFigures[],
  limits: DriftLimits,
): GateVerdict {
  const { entropy, tokens } = candidate;
  const measurements: Record<string, number> = { answer_tokens: tokens };
  if (entropy !== undefined) measurements['answer_entropy'] = entropy;
  const [serving] = others;
  const reasons = others.map((other) => whyOut(guards.entropy, entropy, other.entropy, limits, other.version));
  if (serving !== undefined) reasons.push(whyOut(guards.length, tokens, serving.tokens, limits, serving.version));
  return { measurements, why: reasons.find((why) => why !== '') ?? '' };
}

/** Why the version that a step started from, which serves, is to be rolled back; empty where it is not, or was not measured. */
export function whyRollBack(measurements: Readonly<Record<string, number>>, limits: DriftLimits): string {
  return whyOut(guards.served_entropy, measurements['entropy_ratio'], 1, limits, 'the base');
}

function whyOut(
  { measure, factorOf, says }: Guard,
  value: number | undefined,
  other: number | undefined,
  limits: DriftLimits,
  beside: string,
): string {
  const factor = factorOf(limits);
  if (value === undefined || other === undefined || other <= 0) return '';
  const ratio = value / other;
  // Written so that NaN is drift.
  if (ratio >= 1 / factor && ratio <= factor) return '';
  return `${measure}: ${value.toPrecision(3)} ${says}, beside ${other.toPrecision(3)} of ${beside} (bound ${factor} times)`;
}
