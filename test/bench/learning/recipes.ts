// What parts of the experiment have otherwise in their recipe, as `backtalk recipe --set` takes it.

/** What each method is, in a recipe; part (a) has the one that the laptop uses. */
export const methodRecipes = {
  binary: 'method=binary',
  'opd, sampled': 'method=opd,opdForm=sampled',
  'opd, topk': 'method=opd,opdForm=topk',
  'opd, full, reverse KL': 'method=opd,opdForm=full,divergence=reverse_kl',
  'opd, full': 'method=opd,opdForm=full',
  'opd, hybrid': 'method=opd',
  'opd, hybrid, the first third of the tokens': 'method=opd,distillShare=0.34',
  'opd, hybrid, taught by itself': 'method=opd,teacher=current',
  'opd, hybrid, taught by its average': 'method=opd,teacher=ema',
  'combined, constant KL': 'klBetaFirst=0.02,klTargetNats=0',
} as const;

/** One fixed negative advantage on what is corrected, and nothing that says what is wanted. */
export const withoutTeacher = 'method=binary,weightRl=1,baseline=none';

/** Rewards alone, as the method has them for general agents, with its constant KL. */
const byReward = 'method=binary,weightRl=1,stepBoundNats=8,klBetaFirst=0.02,klTargetNats=0,effective=16,waitMs=20000';

export const rewardRecipes = {
  'outcome and votes': byReward,
  'outcome alone': `${byReward},stepReward=outcome`,
} as const;
