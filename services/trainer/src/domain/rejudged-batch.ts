// A batch of the past as the judge of now would have had it: the same turns, lessons and numbers, with other verdicts, and what follows from
// them, which are rewards, hindsight and baselines. What people and rules said of a turn after its first judgement stays. Pure.
import { isFirstJudgement } from '@backtalk/kit';
import type { BatchClosed, BatchSample, TurnJudged, UserBaseline } from '@backtalk/proto/facts';

import { baselinesAfter, type UserVerdict } from './baselines.js';
import { hindsightsOf } from './batch-fact.js';
import { candidateOf } from './candidate.js';
import type { Recipe } from './recipe.js';
import { isOfTurn } from './rehearsal.js';
import { worthOf, type LearningContext } from './sample-worth.js';
import type { TurnFacts } from './settle-reason.js';

/** Of one turn. */
export interface Rejudged {
  readonly facts: TurnFacts;
  /** As the batch had it. */
  readonly first: TurnJudged;
  /** By the judge of now; undefined where it is not judged again, and stays. */
  readonly again: TurnJudged | undefined;
}

/** What another judge changes of a batch, in samples. */
export interface JudgeChanges {
  /** That were asked about. */
  readonly turns: number;
  readonly verdicts: number;
  /** Words of hindsight, also where a lesson says them already. */
  readonly hints: number;
  /** That are not judged again: their person has said no to some turn, or the log does not hold them whole. */
  readonly refused: number;
}

export interface RejudgedBatch {
  readonly batch: BatchClosed;
  /** After it; undefined where they are those of the log. */
  readonly baselines: readonly UserBaseline[] | undefined;
  readonly changes: JudgeChanges;
}

/** What was known when the batch closed. */
export interface ClosedAt extends Omit<LearningContext, 'steps' | 'nowMs' | 'readSinceMs'> {
  /** Verdicts of before were judged otherwise, so that the baselines are not those of then. */
  readonly moved: boolean;
}

/**
 * @param judgements by turn, of each sample that is judged by votes and evidence
 * @param recipe that the batch closed with
 */
export function rejudgedBatch(
  batch: BatchClosed,
  judgements: ReadonlyMap<string, Rejudged>,
  at: ClosedAt,
  recipe: Recipe,
): RejudgedBatch {
  const context = { ...at, steps: [], nowMs: 0, readSinceMs: 0 };
  const samples = batch.samples.map((sample) => {
    const rejudged = isFirstJudgement(sample) ? judgements.get(sample.turn) : undefined;
    return rejudged === undefined ? sample : sampleAgain(sample, rejudged, batch, { context, recipe, moved: at.moved });
  });
  const changes = changesIn([...judgements.values()]);
  const isAsItWas = !at.moved && changes.verdicts === 0;
  const baselines = isAsItWas || batch.repeats > 0 ? undefined : baselinesAfter(at.baselines, verdictsIn(samples));
  return { batch: { ...batch, samples }, baselines, changes };
}

/** Those that move baselines, of a batch whose samples are its own. */
export function verdictsIn(samples: readonly BatchSample[]): UserVerdict[] {
  return samples
    .filter((sample) => isOfTurn(sample) && !sample.shown)
    .map(({ user, verdict, attempt }) => ({ user, verdict, stepReward: attempt?.reward }));
}

interface Reckoning {
  readonly context: LearningContext;
  readonly recipe: Recipe;
  readonly moved: boolean;
}

function sampleAgain(
  sample: BatchSample,
  { facts, first, again }: Rejudged,
  { lessons }: BatchClosed,
  { context, recipe, moved }: Reckoning,
): BatchSample {
  const judged = again ?? first;
  const isSaid = isSaidSo(first, judged);
  // What is judged as it was is as it was, whatever a release of before made of it.
  if (isSaid && first.verdict === judged.verdict && !moved) return sample;
  const worth = worthOf(candidateOf({ message: judged, sequence: 0, timeMs: 0 }, facts, recipe), context, recipe);
  const advantage = worth.kind === 'effective' || worth.kind === 'idle' ? worth.advantage : 0;
  const rewarded = { ...sample, verdict: judged.verdict, advantage };
  // The same words are shown as they were.
  if (isSaid) return rewarded;
  const shown = lessons.filter(({ id }) => sample.lessons.includes(id));
  const hinted = worth.kind === 'effective' && worth.hinted;
  return { ...rewarded, ...hindsightsOf({ hinted, judged }, shown, lessons) };
}

function changesIn(judgements: readonly Rejudged[]): JudgeChanges {
  const again = judgements.flatMap(({ first, again }) => (again === undefined ? [] : [{ first, again }]));
  return {
    turns: judgements.length,
    verdicts: again.filter(({ first, again }) => first.verdict !== again.verdict).length,
    hints: again.filter(({ first, again }) => !isSaidSo(first, again)).length,
    refused: judgements.length - again.length,
  };
}

function isSaidSo(a: TurnJudged, b: TurnJudged): boolean {
  return [a.hint, ...a.otherHints].join('\n') === [b.hint, ...b.otherHints].join('\n');
}
