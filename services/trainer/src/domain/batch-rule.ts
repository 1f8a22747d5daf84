// Whether a batch closes now, and with what; the same input gives the same decision.
import { TurnJudged_Source } from '@backtalk/proto/facts';

import type { Recipe } from './recipe.js';
import { pickUnderCap } from './share-cap.js';
import type { Settling, Waiting, Weighed } from './weigh-turns.js';

export interface TrainDecision {
  readonly kind: 'train';
  readonly why: 'full' | 'timeout';
  readonly effective: readonly Weighed[];
  readonly anchors: readonly Weighed[];
  readonly settled: readonly Settling[];
}

export type BatchDecision =
  | TrainDecision
  | { readonly kind: 'settle'; readonly settled: readonly Settling[] }
  | { readonly kind: 'wait'; readonly untilMs: number | undefined };

/** At most this share of a batch comes from the at-least-one rule. */
const atLeastOneShare = 1 / 16;

export function decideBatch(waiting: Waiting, recipe: Recipe, nowMs: number): BatchDecision {
  let room = Math.max(1, Math.floor(recipe.effective * atLeastOneShare));
  const eligible = waiting.effective.filter(({ candidate }) => {
    if (candidate.judged.source !== TurnJudged_Source.SOURCE_AT_LEAST_ONE) return true;
    room -= 1;
    return room >= 0;
  });
  const full = pickUnderCap(eligible, recipe.effective, 0);
  if (full.length >= recipe.effective) return train('full', full, waiting, recipe);
  const oldestMs = eligible[0]?.candidate.waitingSinceMs;
  if (oldestMs === undefined || eligible.length < recipe.effectiveMin)
    return settleOrWait(waiting, recipe, nowMs, undefined);
  if (nowMs - oldestMs < recipe.waitMs) return settleOrWait(waiting, recipe, nowMs, oldestMs);
  return train('timeout', pickUnderCap(eligible, recipe.effective, recipe.effectiveMin), waiting, recipe);
}

function train(
  why: 'full' | 'timeout',
  effective: readonly Weighed[],
  waiting: Waiting,
  recipe: Recipe,
): TrainDecision {
  const room = Math.round(effective.length * recipe.anchorsPerEffective);
  // The newest: they are nearest to the weights that the step starts from.
  const anchors = room === 0 ? [] : waiting.idle.slice(-room);
  return { kind: 'train', why, effective, anchors, settled: waiting.settled };
}

/** While learning waits (paused, a candidate undecided, no batch), turns that will never be trained on are still settled. */
export function settleOrWait(
  waiting: Waiting,
  recipe: Recipe,
  nowMs: number,
  oldestMs: number | undefined,
): BatchDecision {
  const { settled } = waiting;
  const oldestSettledMs =
    settled.length === 0 ? undefined : Math.min(...settled.map(({ candidate }) => candidate.waitingSinceMs));
  const overdue = oldestSettledMs !== undefined && nowMs - oldestSettledMs >= recipe.waitMs;
  if (settled.length >= recipe.settleAtTurns || overdue) return { kind: 'settle', settled };
  const since = [oldestMs, oldestSettledMs].filter((value) => value !== undefined);
  return { kind: 'wait', untilMs: since.length === 0 ? undefined : Math.min(...since) + recipe.waitMs };
}
