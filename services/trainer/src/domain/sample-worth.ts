// What a waiting turn is worth to the next batch, whatever else waits: shares, duplicates and sizes are the batch rule's.
import type { Lesson, UserBaseline } from '@backtalk/proto/facts';

import { baselineOf } from './baselines.js';
import type { Candidate } from './candidate.js';
import { teaches } from './lesson-ledger.js';
import type { Recipe } from './recipe.js';
import type { SettleReason } from './settle-reason.js';

/** A scalar reward below this says nothing. */
const advantageFloor = 0.05;

/** Steps from a version to the next parent along its ancestry. */
export type VersionsBack = (version: string) => number | 'burned' | 'unknown';

/** What the newest batches and versions of a policy say about any turn. */
export interface LearningContext {
  readonly lessons: readonly Lesson[];
  readonly baselines: readonly UserBaseline[];
  readonly versionsBack: VersionsBack;
}

export type Worth =
  | { readonly kind: 'settled'; readonly reason: string }
  | { readonly kind: 'effective'; readonly advantage: number; readonly hinted: boolean }
  | { readonly kind: 'idle'; readonly advantage: number };

export function worthOf(candidate: Candidate, context: LearningContext, recipe: Recipe): Worth {
  if (candidate.reason !== undefined) return { kind: 'settled', reason: candidate.reason };
  const back = context.versionsBack(candidate.version);
  if (back === 'burned') return settled('burned_version');
  if (back === 'unknown') return settled('unknown_version');
  // The exact measure, mean |log v|, is the training worker's, which sees both distributions.
  const fresh = back <= recipe.rewardVersions;
  if (!fresh && !(back <= recipe.distillVersions && distils(recipe))) return settled('stale');

  const advantage = fresh ? rewardOf(candidate, context, recipe) : 0;
  const hinted = hintTeaches(candidate, context, recipe);
  if (hinted || (isSpoken(candidate) && Math.abs(advantage) > advantageFloor))
    return { kind: 'effective', advantage, hinted };
  return { kind: 'idle', advantage };
}

/** Distillation that looks at whole distributions: it is exact at each position, however old or greedy the answer is. */
export function distils({ method, opdForm }: Recipe): boolean {
  return method !== 'binary' && opdForm === 'full';
}

function settled(reason: SettleReason): Worth {
  return { kind: 'settled', reason };
}

function isSpoken({ judged }: Candidate): boolean {
  return judged.verdict !== 0 || judged.hasAdvantage;
}

/** A = r − b; the at-least-one rule's advantage is used as it is. */
function rewardOf({ judged, user, greedy, cut }: Candidate, { baselines }: LearningContext, recipe: Recipe): number {
  if (recipe.method === 'opd' || greedy) return 0;
  const baseline = recipe.baseline === 'none' || judged.verdict === 0 ? 0 : baselineOf(baselines, user);
  const advantage = judged.hasAdvantage ? judged.advantage : judged.verdict - baseline;
  return cut && advantage > 0 ? 0 : advantage;
}

function hintTeaches({ judged, user, greedy }: Candidate, { lessons }: LearningContext, recipe: Recipe): boolean {
  if (recipe.method === 'binary' || (greedy && !distils(recipe))) return false;
  return teaches(lessons, judged.hint, user);
}
