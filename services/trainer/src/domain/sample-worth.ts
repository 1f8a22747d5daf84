// What is a waiting turn worth to the next batch?
// In: a candidate and the state of the policy. Out: settled (and why), effective, or idle (at most an anchor), with its advantage.
// Never looks at other candidates: shares, duplicates and sizes are the batch rule's.
import type { Lesson, UserBaseline } from '@backtalk/proto/facts';

import { advantageOf, rewards, type BaselineMode } from './advantage.js';
import { baselineOf } from './baselines.js';
import type { Candidate } from './candidate.js';
import { teaches } from './lesson-ledger.js';
import type { SettleReason } from './settle-reason.js';
import { freshness, type StalenessRule } from './staleness.js';

export type Method = 'binary' | 'opd' | 'combined';
export type OpdForm = 'sampled' | 'full';

export interface WorthRule {
  readonly method: Method;
  readonly opdForm: OpdForm;
  readonly baseline: BaselineMode;
  readonly staleness: StalenessRule;
}

/** Steps from a version to the next parent along its ancestry. */
export type VersionsBack = (version: string) => number | 'burned' | 'unknown';

export interface PolicyState {
  readonly lessons: readonly Lesson[];
  readonly baselines: readonly UserBaseline[];
  readonly versionsBack: VersionsBack;
}

export type Worth =
  | { readonly kind: 'settled'; readonly reason: string }
  | { readonly kind: 'effective'; readonly advantage: number; readonly hinted: boolean }
  | { readonly kind: 'idle'; readonly advantage: number };

export function worthOf(candidate: Candidate, state: PolicyState, rule: WorthRule): Worth {
  if (candidate.reason !== undefined) return { kind: 'settled', reason: candidate.reason };
  const back = state.versionsBack(candidate.version);
  if (back === 'burned') return settled('burned_version');
  if (back === 'unknown') return settled('unknown_version');
  const fresh = freshness(back, rule.staleness);
  const distillable =
    fresh === 'fresh' || (fresh === 'distill_only' && rule.opdForm === 'full' && rule.method !== 'binary');
  if (!distillable) return settled('stale');

  const advantage = fresh === 'fresh' ? rewardOf(candidate, state, rule) : 0;
  const hinted = hintTeaches(candidate, state, rule);
  if (hinted || rewards(givenVerdict(candidate), advantage)) return { kind: 'effective', advantage, hinted };
  return { kind: 'idle', advantage };
}

function settled(reason: SettleReason): Worth {
  return { kind: 'settled', reason };
}

function rewardOf(candidate: Candidate, state: PolicyState, rule: WorthRule): number {
  if (rule.method === 'opd' || candidate.greedy) return 0;
  const advantage = advantageOf(givenVerdict(candidate), rule.baseline, baselineOf(state.baselines, candidate.user));
  return candidate.cut && advantage > 0 ? 0 : advantage;
}

function givenVerdict({ judged }: Candidate): { verdict: number; advantageGiven: number | undefined } {
  return { verdict: judged.verdict, advantageGiven: judged.hasAdvantage ? judged.advantage : undefined };
}

/** A greedy answer serves the form that looks at whole distributions only. */
function hintTeaches(candidate: Candidate, state: PolicyState, rule: WorthRule): boolean {
  if (rule.method === 'binary' || (candidate.greedy && rule.opdForm !== 'full')) return false;
  return teaches(state.lessons, candidate.judged.hint, candidate.user);
}
