import { BatchSample } from '@backtalk/proto/facts';
import { describe, expect, it } from 'vitest';

import { recipeWith } from '../testing/candidates.js';
import { guardBounds, trippedGuards } from './step-guards.js';
import { trainingOf } from './step-plan.js';

const recipe = recipeWith({ stepBoundNats: 1 });

function guardsOf(measurements: Record<string, number>, dropped: readonly string[] = ['', '', '', '']) {
  const samples = dropped.map((reason, at) => ({
    turn: `t${at}`,
    dropped: reason,
    divergence: 1,
    staleness: 0,
    gradientShare: 0,
    answerReplaced: false,
    hintChosen: 0,
  }));
  const hints: Readonly<Record<string, object>> = { t2: { hindsight: 'A word about it.' }, t3: {} };
  const batch = {
    samples: samples.map(({ turn }) => BatchSample.fromPartial({ turn, ...(hints[turn] ?? { lessons: ['lesson'] }) })),
  };
  return trippedGuards(batch, { measurements, samples }, recipe).map(({ guard, action, why }) => [action, guard, why]);
}

describe('guards of a step', () => {
  it('a step that is taken once more is held to the bounds of its own plan', () => {
    const plan = trainingOf(recipeWith({ stepBoundNats: 40 }));
    const report = { measurements: { gradient_norm: 1, kl_step: 36 }, samples: [] };
    expect(trippedGuards({ samples: [] }, report, guardBounds(plan, recipe))).toEqual([]);
    expect(trippedGuards({ samples: [] }, report, guardBounds(trainingOf(recipe), recipe))).toHaveLength(1);
  });

  it('a step within its bounds, or of which nothing is known, trips none', () => {
    const calm = { gradient_norm: 0.1, kl_step: 1, ess: 0.31, masked_share: 0.6 };
    expect(guardsOf(calm, ['too_long', 'too_long', '', ''])).toEqual([]);
    expect(guardsOf({})).toEqual([]);
    expect(trippedGuards({ samples: [] }, undefined, recipe)).toEqual([]);
  });

  it.each([
    ['too_long', { gradient_norm: 1 }, ['too_long', 'too_long', 'too_long', ''], '0.750 of the samples'],
    // One of the four has neither lesson nor hindsight, so that two of three lost their teacher.
    [
      'template_mismatch',
      { gradient_norm: 1 },
      ['template_mismatch', 'template_mismatch', '', ''],
      '0.667 of the hinted',
    ],
    ['nothing_trained', { gradient_norm: 0 }, ['stale', 'ratio_too_small', '', ''], 'stale, ratio_too_small'],
    ['kl_step', { gradient_norm: 1, kl_step: 1.01 }, ['', '', '', ''], '1.01 nats an answer'],
  ] as const)('%s skips the step and says what was measured', (guard, measurements, dropped, said) => {
    expect(guardsOf({ ...measurements }, dropped)).toEqual([['skip', guard, expect.stringContaining(said)]]);
  });

  it('a bound of 0 on how far a step moves is none', () => {
    const report = { measurements: { kl_step: 9 }, samples: [] };
    expect(trippedGuards({ samples: [] }, report, recipeWith({ stepBoundNats: 0 }))).toEqual([]);
  });

  it.each(['ess', 'masked_share'])('%s is named where the worker says that it acted, and skips nothing', (name) => {
    const guards = guardsOf({ gradient_norm: 1, [name]: 0.25, [`guard_${name}`]: 1 });
    expect(guards).toEqual([['mask', name, expect.stringContaining('0.250')]]);
  });
});
