// Does a batch close now, and with what?
// In: the weighed turns and the present time. Out: train these, only settle those, or wait until when.
// Never changes anything; the same input gives the same decision.
import { TurnJudged_Source } from '@backtalk/proto/facts';

import { pickUnderCap } from './share-cap.js';
import type { Settling, Waiting, Weighed } from './weigh-turns.js';

export interface BatchRule {
  /** A batch is full at this many effective samples. */
  readonly effective: number;
  /** When the oldest effective sample has waited this long, fewer will do. */
  readonly waitMs: number;
  readonly effectiveMin: number;
  /** Anchors taken for each effective sample. */
  readonly anchorsPerEffective: number;
  /** Settled turns are told in a fact of their own once there are this many, or one of them has waited `waitMs`. */
  readonly settleAt: number;
}

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

export function decideBatch(waiting: Waiting, rule: BatchRule, nowMs: number): BatchDecision {
  const eligible = withinAtLeastOne(waiting.effective, rule);
  const full = pickUnderCap(eligible, rule.effective, 0);
  if (full.length >= rule.effective) return train('full', full, waiting, rule);
  const oldestMs = eligible[0]?.candidate.waitingSinceMs;
  const minimum = Math.min(rule.effectiveMin, rule.effective);
  if (oldestMs === undefined || eligible.length < minimum) return settleOrWait(waiting, rule, nowMs, undefined);
  if (nowMs - oldestMs < rule.waitMs) return settleOrWait(waiting, rule, nowMs, oldestMs);
  return train('timeout', pickUnderCap(eligible, rule.effective, minimum), waiting, rule);
}

function train(
  why: 'full' | 'timeout',
  effective: readonly Weighed[],
  waiting: Waiting,
  rule: BatchRule,
): TrainDecision {
  const room = Math.round(effective.length * rule.anchorsPerEffective);
  // The newest: they are nearest to the weights that the step starts from.
  const anchors = room === 0 ? [] : waiting.idle.slice(-room);
  return { kind: 'train', why, effective, anchors, settled: waiting.settled };
}

/** While learning waits (paused, a candidate undecided, no batch), turns that will never be trained on are still told. */
export function settleOrWait(
  waiting: Waiting,
  rule: BatchRule,
  nowMs: number,
  oldestMs: number | undefined,
): BatchDecision {
  const { settled } = waiting;
  const oldestSettledMs =
    settled.length === 0 ? undefined : Math.min(...settled.map(({ candidate }) => candidate.waitingSinceMs));
  const overdue = oldestSettledMs !== undefined && nowMs - oldestSettledMs >= rule.waitMs;
  if (settled.length >= rule.settleAt || overdue) return { kind: 'settle', settled };
  const since = [oldestMs, oldestSettledMs].filter((value) => value !== undefined);
  return { kind: 'wait', untilMs: since.length === 0 ? undefined : Math.min(...since) + rule.waitMs };
}

function withinAtLeastOne(effective: readonly Weighed[], rule: BatchRule): Weighed[] {
  let room = Math.max(1, Math.floor(rule.effective * atLeastOneShare));
  return effective.filter(({ candidate }) => {
    if (candidate.judged.source !== TurnJudged_Source.SOURCE_AT_LEAST_ONE) return true;
    room -= 1;
    return room >= 0;
  });
}
