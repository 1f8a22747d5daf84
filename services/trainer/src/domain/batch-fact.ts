// The batch.closed fact of a decision. Alone, with the log, it fixes the step: two trainers that decide the same write the same fact.
import { asWording, inForce, ownWish, versionName } from '@backtalk/kit';
import { BatchClosed, type BatchSample, type Lesson, type SettledTurn } from '@backtalk/proto/facts';
import { createHash } from 'node:crypto';

import type { BatchChain } from './batch-chain.js';
import type { TrainDecision } from './batch-rule.js';
import { baselinesAfter } from './baselines.js';
import type { CarriedState } from './carried-state.js';
import { figuresWithout, forgottenIn } from './forgotten-people.js';
import { withChanges, type StoredChange } from './lesson-changes.js';
import { settledCovers } from './lesson-cover.js';
import type { Wish } from './lesson-ledger.js';
import { hindsightBeside } from './lessons-in-force.js';
import type { Recipe } from './recipe.js';
import { isOfTurn, rehearsedSamples } from './rehearsal.js';
import { figuresAfter, type RewardedStep } from './step-rewards.js';
import { settling, type Settling, type Weighed } from './weigh-turns.js';
import type { Relate } from './wish-relation.js';

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

/**
 * A batch that will be trained.
 * @param lessons the ledger with what its samples said
 */
export function trainingBatch(
  end: ChainEnd,
  decision: TrainDecision,
  recipe: Recipe,
  step: StepStart,
  lessons: Lesson[],
): BatchClosed {
  const { policy, chain, state } = end;
  const number = chain.nextNumber();
  // Without a lesson in force there is nothing to hold an anchor to.
  const isHeld = ({ candidate }: Weighed): boolean => inForce(lessons, candidate).length > 0;
  const idle = decision.anchors.filter((anchor) => !isHeld(anchor));
  const taken = [...decision.effective, ...decision.anchors.filter(isHeld)].sort(
    (a, b) => a.candidate.sequence - b.candidate.sequence,
  );
  const effective = new Set(decision.effective);
  const samples = taken.map((weighed): BatchSample => {
    const { turn, tenant, user, judged } = weighed.candidate;
    const shown = inForce(lessons, weighed.candidate);
    return {
      turn,
      tenant,
      user,
      revision: judged.revision,
      verdict: judged.verdict,
      advantage: weighed.advantage,
      effective: effective.has(weighed),
      lessons: shown.map(({ id }) => id),
      giver: judged.giver,
      ...hindsightsOf({ hinted: weighed.hinted, judged }, shown, lessons),
      shown: weighed.candidate.shown.length > 0,
      question: 0,
      attempt: weighed.step?.attempt,
    };
  });
  const settled = [...decision.settled, ...idle.map((anchor) => settling(anchor, 'nothing_to_learn'))];
  const { rehearsed } = decision;
  const round = { batch: number, version: chain.nextVersionNumber(), taken: samples.length, recipe };
  if (rehearsed !== undefined) samples.push(...rehearsedSamples(rehearsed, lessons, round));
  const tokens = taken.reduce((sum, { candidate }) => sum + candidate.answerTokens, 0);
  const meanLength = taken.length === 0 ? recipe.answerTokensMax / 2 : Math.max(1, tokens / taken.length);
  return {
    ...settlingBatch(end, settled.map(settledTurn), decision.why),
    parent: step.parent,
    version: versionName(policy, chain.nextVersionNumber()),
    samples,
    seed: batchSeed(policy, number, step.seed),
    configDigest: step.planDigest,
    lessons,
    baselines: baselinesAfter(
      state.baselines,
      taken
        .filter(({ candidate }) => candidate.shown.length === 0)
        .map(({ candidate: { user, judged }, step }) => ({
          user,
          verdict: judged.verdict,
          stepReward: step?.attempt.reward,
        })),
    ),
    steps: stepsAfter(state, [...taken, ...settled]),
    meanAnswerLength: state.meanAnswerLength || recipe.meanAnswerTokens || meanLength,
  };
}

/** Where a lesson says what the hint does, nothing is chosen beside it. */
export function hindsightsOf(
  { hinted, judged }: Pick<Weighed, 'hinted'> & Pick<Weighed['candidate'], 'judged'>,
  shown: readonly Lesson[],
  lessons: readonly Lesson[],
) {
  const beside = (hint: string) => hindsightBeside(hint, shown, lessons);
  const hindsight = hinted ? beside(judged.hint) : '';
  const others = hindsight === '' ? [] : judged.otherHints.map(beside).filter((hint) => hint !== '');
  return { hindsight, otherHindsights: others };
}

/**
 * What people asked for in their own words, in the order in which they said it, whatever others say of the answer. Feedback on the turn of
 * another person is about that turn alone.
 */
export function wishesOf({ effective }: Pick<TrainDecision, 'effective'>): Wish[] {
  const inOrder = effective.toSorted(
    ({ candidate: a }, { candidate: b }) => a.saidAtMs - b.saidAtMs || a.sequence - b.sequence,
  );
  return inOrder.flatMap(({ wished, candidate: { turn, tenant, user, judged, saidAtMs } }) => {
    const { text, stands, bare } = ownWish(judged);
    if (!wished || bare) return [];
    return [{ turn, tenant, user, session: judged.session, stands, text: asWording(text), saidAtMs }];
  });
}

/** A whole number below 2^48; it stands in the fact, so that the same batch always has the same seed. */
export function batchSeed(policy: string, batch: number, seed: number): number {
  return createHash('sha256').update(`${policy}\u0000${batch}\u0000${seed}`).digest().readUIntBE(0, 6);
}

/** A fact that only settles: no samples, no version, no parent, no step. */
export function settlingBatch(end: ChainEnd, settled: readonly SettledTurn[], why: string, detail = ''): BatchClosed {
  const { policy, chain, state } = end;
  const { lessons, baselines, steps, meanAnswerLength, klBeta, lessonsThrough } = state;
  const own = { lessons: [...lessons], baselines: [...baselines], steps: [...steps] };
  const carried = { ...own, meanAnswerLength, klBeta, lessonsThrough };
  return BatchClosed.fromPartial({
    policy,
    number: chain.nextNumber(),
    settled: [...settled],
    why,
    detail,
    marked: true,
    ...carried,
  });
}

/** One that settles turns of which some may be steps of attempts. */
export function turnsSettled(end: ChainEnd, settled: readonly Settling[]): BatchClosed {
  const state = { ...end.state, steps: stepsAfter(end.state, settled) };
  return settlingBatch({ ...end, state }, settled.map(settledTurn), 'settled');
}

function stepsAfter({ steps }: CarriedState, handled: readonly { readonly step?: RewardedStep | undefined }[]) {
  return figuresAfter(
    steps,
    handled.flatMap(({ step }) => (step === undefined ? [] : [step])),
  );
}

/** A fact that takes in what people and operators said of lessons: it settles nothing, and no step follows. */
export function lessonsBatch(end: ChainEnd, changes: readonly StoredChange[], relate: Relate): BatchClosed {
  const batch = end.chain.nextNumber();
  const lessons = settledCovers(withChanges(end.state.lessons, changes, { batch, relate }));
  const lessonsThrough = Math.max(end.state.lessonsThrough, ...changes.map(({ sequence }) => sequence));
  const people = forgottenIn(changes);
  const baselines = figuresWithout(end.state.baselines, people);
  const steps = figuresWithout(end.state.steps, people);
  return settlingBatch({ ...end, state: { ...end.state, lessons, baselines, steps, lessonsThrough } }, [], 'lessons');
}

/** A fact that takes in what a version's answers show of lessons. */
export function measuredBatch(end: ChainEnd, lessons: readonly Lesson[]): BatchClosed {
  return settlingBatch({ ...end, state: { ...end.state, lessons: settledCovers(lessons) } }, [], 'measured');
}

export type GivingUp = 'step_failed' | 'step_skipped' | 'burned_parent' | 'abandoned';

/** The samples of a batch whose step will never be taken. Of one that repeats another, they were settled before. */
export function givenUp(batch: BatchClosed, reason: GivingUp): SettledTurn[] {
  if (batch.repeats > 0) return [];
  return batch.samples.filter(isOfTurn).map(({ turn, tenant, user }) => ({ turn, tenant, user, reason }));
}

function settledTurn({ candidate, reason }: Settling): SettledTurn {
  const { turn, tenant, user } = candidate;
  return { turn, tenant, user, reason };
}
