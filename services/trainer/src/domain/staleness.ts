// How many versions ago was a turn answered, and what may it still be used for?
// In: the steps between the turn's version and the next parent. Out: reward and distillation, distillation alone, or nothing.
// The exact measure, mean |log v|, is the training worker's, which sees both distributions: it leaves out the terms that weigh by v.

export interface StalenessRule {
  readonly rewardVersions: number;
  readonly distillVersions: number;
}

export type Freshness = 'fresh' | 'distill_only' | 'stale';

export function freshness(versionsBack: number, rule: StalenessRule): Freshness {
  if (versionsBack <= rule.rewardVersions) return 'fresh';
  return versionsBack <= rule.distillVersions ? 'distill_only' : 'stale';
}
