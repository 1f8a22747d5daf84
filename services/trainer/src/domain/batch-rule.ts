// Whether a batch closes now, and with what; the same input gives the same decision.
import type { Speaker } from '@backtalk/kit';
import { TurnJudged_Source } from '@backtalk/proto/facts';

import type { Candidate } from './candidate.js';
import type { Recipe } from './recipe.js';
import { pickUnderCap, type RecentSamples } from './share-cap.js';
import type { Settling, Waiting, Weighed } from './weigh-turns.js';

export interface TrainDecision {
  readonly kind: 'train';
  readonly why: 'full' | 'timeout' | 'rehearsed';
  readonly effective: readonly Weighed[];
  readonly anchors: readonly Weighed[];
  readonly settled: readonly Settling[];
  /** Whose lessons are rehearsed besides. */
  readonly rehearsed?: Speaker;
  /** The turn for whose words they are. */
  readonly saidIn?: string;
}

export type BatchDecision =
  | TrainDecision
  | { readonly kind: 'settle'; readonly settled: readonly Settling[] }
  | { readonly kind: 'wait'; readonly untilMs: number | undefined };

/** At most this share of a batch comes from the at-least-one rule. */
const atLeastOneShare = 1 / 16;

/**
 * A batch holds one tenant. Of several tenants that have enough for one, the one that was in a batch longest ago comes first, or whose oldest
 * sample has waited longest: one that says more than is trained on always has an old sample.
 */
export function decideBatch(
  waiting: Waiting,
  recipe: Recipe,
  nowMs: number,
  recent: RecentSamples = [],
): BatchDecision {
  const asked = [...new Set(waiting.effective.map(({ candidate }) => candidate.tenant))];
  const lastIn = (tenant: string) => recent.findLastIndex((samples) => samples.some((one) => one.tenant === tenant));
  const tenants = asked.toSorted((a, b) => lastIn(a) - lastIn(b));
  const since: number[] = [];
  for (const tenant of tenants) {
    const decision = decideFor(ofTenant(waiting, tenant), recipe, nowMs, recent);
    if (typeof decision !== 'number') return decision;
    since.push(decision);
  }
  const oldestMs = Math.min(...since);
  return settleOrWait(waiting, recipe, nowMs, Number.isFinite(oldestMs) ? oldestMs : undefined);
}

function ofTenant(waiting: Waiting, tenant: string): Waiting {
  const { effective, idle, settled } = waiting;
  const isOurs = ({ candidate }: { readonly candidate: Candidate }): boolean => candidate.tenant === tenant;
  return {
    ...waiting,
    effective: effective.filter(isOurs),
    idle: idle.filter(isOurs),
    settled: settled.filter(isOurs),
  };
}

/** Those that a batch may take, answers of the newest weights first: what came long before says little of them, and where more comes in than is trained on, the oldest are never caught up with. */
export function eligibleIn(waiting: Waiting, recipe: Recipe): Weighed[] {
  let room = Math.max(1, Math.floor(recipe.effective * atLeastOneShare));
  const eligible = waiting.effective.filter(({ candidate }) => {
    if (candidate.judged.source !== TurnJudged_Source.SOURCE_AT_LEAST_ONE) return true;
    room -= 1;
    return room >= 0;
  });
  return eligible.toSorted((a, b) => a.back - b.back);
}

/** A batch of one tenant; or since when one waits that has enough for a small one, Infinity where none has. */
function decideFor(waiting: Waiting, recipe: Recipe, nowMs: number, recent: RecentSamples): TrainDecision | number {
  const nearest = eligibleIn(waiting, recipe);
  const full = pickUnderCap(nearest, recipe.effective, 0, recent);
  if (full.length >= recipe.effective) return train('full', full, waiting, recipe);
  const oldestMs = waiting.effective.find((weighed) => nearest.includes(weighed))?.candidate.waitingSinceMs;
  if (oldestMs === undefined || nearest.length < recipe.effectiveMin) return Infinity;
  if (nowMs - oldestMs < recipe.waitMs) return oldestMs;
  return train('timeout', pickUnderCap(nearest, recipe.effective, recipe.effectiveMin, recent), waiting, recipe);
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
  const untilMs = Math.min(waiting.attemptsUntilMs, ...since.map((value) => value + recipe.waitMs));
  return { kind: 'wait', untilMs: Number.isFinite(untilMs) ? untilMs : undefined };
}
