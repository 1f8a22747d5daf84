// Decides whether a candidate may serve: from what the trainer measured (probes of the manifest) and what the engine measured
// on the same ids, and from how loaders and engines failed with it. Pure.
import type { BacktalkError } from '@backtalk/kit';
import type { ComparedAnswer } from '@backtalk/proto/facts';
import type { Probe } from '@backtalk/proto/weights';
import { mean } from './means.js';

export interface GateLimits {
  /** mean |Δ logprob| per token between trainer and engine. */
  readonly parityMax: number;
  /** KL to what the base says, shown the lessons or not, nats an answer. */
  readonly driftMax: number;
  /** Level of the sign test on faulty answers. */
  readonly behaviourLevel: number;
}

export interface GateInput {
  readonly probes: readonly Probe[];
  /** The engine's logprobs under the candidate, one list for each probe. */
  readonly candidate: readonly (readonly number[])[];
  /** The base's logprobs, one list for each probe. */
  readonly base: readonly (readonly number[])[];
}

export interface GateVerdict {
  readonly measurements: Readonly<Record<string, number>>;
  /** Empty when the candidate may serve. */
  readonly why: string;
  /** Answers of what serves and of the candidate to the same questions, where both were asked. */
  readonly compared?: readonly ComparedAnswer[];
}

/** Nats a token; beyond it a ratio says only "far". */
const logRatioMax = 20;

export function judgeCandidate(input: GateInput, limits: Pick<GateLimits, 'parityMax' | 'driftMax'>): GateVerdict {
  const parity = parityOf(input);
  const drift = driftOf({ ...input, base: withLessons(input) });
  const measurements = {
    parity_mean_abs: parity,
    drift_kl: driftOf(input),
    drift_told_kl: drift,
    probes: input.probes.length,
  };
  if (input.probes.length === 0) return { measurements, why: 'no_probes: the manifest holds no probe to measure' };
  const { parityMax, driftMax } = limits;
  // Written so that NaN is refused.
  if (!(parity <= parityMax))
    return { measurements, why: `parity: mean |Δ logprob| ${parity.toPrecision(3)} is above ${parityMax}` };
  if (!(drift <= driftMax))
    return {
      measurements,
      why: `drift: ${drift.toPrecision(3)} nats an answer from what the base says, shown its lessons or not, are above ${driftMax}`,
    };
  return { measurements, why: '' };
}

/** Refusals that say nothing about the weights: an engine may have restarted since it held them. */
const aboutTheLoader: ReadonlySet<string> = new Set([
  'policy_unknown',
  'peer_refused',
  'model_not_found',
  'engine_unsupported',
  'request_aborted',
]);

/**
 * A refusal (`never`) is about the weights themselves and burns the version. Anything else is about that loader or its
 * engine: it is left out and catches up from the load set, or the version is decided later.
 */
export function burnsVersion(error: BacktalkError): boolean {
  return error.retry === 'never' && !aboutTheLoader.has(error.code);
}

/** Mean over all tokens of all probes. */
export function parityOf({ probes, candidate }: GateInput): number {
  const differences = probes.flatMap(({ answerIds, logprobs }, at) =>
    answerIds.map((_, token) => Math.abs((logprobs[token] ?? Number.NaN) - value(candidate, at, token))),
  );
  return mean(differences);
}

/**
 * Mean over probes of the KL to `base`, estimated on the probe answers, which are samples of the candidate: Σ d with d = log π − log π_base.
 * It may be a little below 0. The estimator that never is (e^−d + d − 1) has the same mean and no bound: of one token that the candidate
 * seldom says and the base often, it says hundreds of nats.
 */
export function driftOf({ probes, candidate, base }: GateInput): number {
  const answers = probes.map(({ answerIds }, at) =>
    answerIds.reduce((sum, _, token) => {
      const ratio = value(candidate, at, token) - value(base, at, token);
      return sum + Math.max(-logRatioMax, Math.min(logRatioMax, ratio));
    }, 0),
  );
  return mean(answers);
}

/**
 * Token by token the even mixture of the base and of the base that is shown the lessons in force: a name at the start of each answer is far
 * from the base by nature, and what was asked for. A policy that says in each place what either of them says is at most log 2 a place away.
 */
function withLessons({ probes, base }: GateInput): readonly (readonly number[])[] {
  return probes.map(({ answerIds, toldLogprobs }, at) =>
    answerIds.map((_, token) => {
      const alone = value(base, at, token);
      const told = toldLogprobs[token] ?? alone;
      const larger = Math.max(alone, told);
      return larger + Math.log((Math.exp(alone - larger) + Math.exp(told - larger)) / 2);
    }),
  );
}

function value(lists: readonly (readonly number[])[], at: number, token: number): number {
  return lists[at]?.[token] ?? Number.NaN;
}
