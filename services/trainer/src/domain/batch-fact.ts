// The batch.closed fact of a decision. Alone, with the log, it fixes the step: two trainers that decide the same write the same fact.
import { versionName } from '@backtalk/kit';
import { BatchClosed, type BatchSample, type SettledTurn } from '@backtalk/proto/facts';
import { createHash } from 'node:crypto';

import type { BatchChain } from './batch-chain.js';
import type { TrainDecision } from './batch-rule.js';
import { baselinesAfter } from './baselines.js';
import type { CarriedState } from './carried-state.js';
import { activeInScope, withHints } from './lesson-ledger.js';
import type { Recipe } from './recipe.js';
import type { Settling } from './weigh-turns.js';

/** Where the chain of a policy is when a fact is added to it. */
export interface ChainEnd {
  readonly policy: string;
  readonly chain: BatchChain;
  readonly state: CarriedState;
}

/** What the step of a batch starts from. */
export interface StepStart {
  readonly parent: string;
  readonly planDigest: string;
  /** Of the installation: runs that should differ are given different ones. */
  readonly seed: number;
}

/** A batch that will be trained. */
export function trainingBatch(end: ChainEnd, decision: TrainDecision, recipe: Recipe, step: StepStart): BatchClosed {
  const { policy, chain, state } = end;
  const taken = [...decision.effective, ...decision.anchors].sort(
    (a, b) => a.candidate.sequence - b.candidate.sequence,
  );
  const hints = decision.effective
    .filter(({ hinted }) => hinted)
    .map(({ candidate }) => ({
      turn: candidate.turn,
      tenant: candidate.tenant,
      user: candidate.user,
      text: candidate.judged.hint,
    }));
  const lessons = withHints(state.lessons, hints, recipe.lessonScope);
  const effective = new Set(decision.effective);
  const samples = taken.map((weighed): BatchSample => {
    const { turn, tenant, user, judged } = weighed.candidate;
    return {
      turn,
      tenant,
      user,
      revision: judged.revision,
      verdict: judged.verdict,
      advantage: weighed.advantage,
      effective: effective.has(weighed),
      lessons: activeInScope(lessons, weighed.candidate).map(({ id }) => id),
      giver: judged.giver,
      hindsight: '',
    };
  });
  const number = chain.nextNumber();
  const tokens = taken.reduce((sum, { candidate }) => sum + candidate.answerTokens, 0);
  const meanLength = Math.max(1, tokens / Math.max(1, taken.length));
  return {
    policy,
    number,
    parent: step.parent,
    version: versionName(policy, chain.nextVersionNumber()),
    samples,
    settled: decision.settled.map(settledTurn),
    seed: batchSeed(policy, number, step.seed),
    configDigest: step.planDigest,
    lessons,
    baselines: baselinesAfter(
      state.baselines,
      taken.map(({ candidate }) => ({ user: candidate.user, verdict: candidate.judged.verdict })),
    ),
    meanAnswerLength: state.meanAnswerLength || recipe.meanAnswerTokens || meanLength,
    why: decision.why,
    klBeta: state.klBeta,
    marked: true,
    detail: '',
    lessonsThrough: 0,
  };
}

/** A whole number below 2^48; it stands in the fact, so that the same batch always has the same seed. */
export function batchSeed(policy: string, batch: number, seed: number): number {
  return createHash('sha256').update(`${policy}\u0000${batch}\u0000${seed}`).digest().readUIntBE(0, 6);
}

/** A fact that only settles: no samples, no version, no parent, no step. */
export function settlingBatch(end: ChainEnd, settled: readonly SettledTurn[], why: string, detail = ''): BatchClosed {
  const { policy, chain, state } = end;
  const { lessons, baselines, meanAnswerLength, klBeta } = state;
  const carried = { lessons: [...lessons], baselines: [...baselines], meanAnswerLength, klBeta };
  return BatchClosed.fromPartial({
    policy,
    number: chain.nextNumber(),
    settled: [...settled],
    why,
    detail,
    lessonsThrough: 0,
    marked: true,
    ...carried,
  });
}

export type GivingUp = 'step_failed' | 'burned_parent' | 'abandoned';

/** The samples of a batch whose step will never be taken. */
export function givenUp(batch: BatchClosed, reason: GivingUp): SettledTurn[] {
  return batch.samples.map(({ turn, tenant, user }) => ({ turn, tenant, user, reason }));
}

export function settledTurn({ candidate, reason }: Settling): SettledTurn {
  const { turn, tenant, user } = candidate;
  return { turn, tenant, user, reason };
}
