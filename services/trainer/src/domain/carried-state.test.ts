import { BatchClosed, Lesson_State, WeightsStaged, WeightsStaged_Stage, WeightsTrained } from '@backtalk/proto/facts';
import { describe, expect, it } from 'vitest';

import { BatchChain } from './batch-chain.js';
import { carriedState, nextKlBeta } from './carried-state.js';
import { recipeSchema } from './recipe.js';
import { VersionLine } from './version-line.js';

it('a step whose version was burned is none that a lesson was taught by', () => {
  const recipe = recipeSchema.parse({});
  const [chain, line] = [new BatchChain('backtalk'), new VersionLine('backtalk')];
  const of = { policy: 'backtalk', version: 'backtalk-v1' };
  const lessons = [{ id: 'l', state: Lesson_State.STATE_ACTIVE, steps: 4 }];
  chain.closed(BatchClosed.fromPartial({ ...of, number: 1, samples: [{ turn: 't', lessons: ['l'] }], lessons }), 1);
  const trained = WeightsTrained.fromPartial({
    ...of,
    batch: 1,
    parent: 'backtalk-v0',
    report: { samples: [{ turn: 't' }] },
  });
  chain.trained(trained, 2);
  line.trained(trained, 0);
  expect(carriedState(chain, line, recipe).lessons[0]?.steps).toBe(4 + recipe.optimizerSteps);
  line.staged(WeightsStaged.fromPartial({ ...of, stage: WeightsStaged_Stage.STAGE_BURNED }), 3);
  expect(carriedState(chain, line, recipe).lessons[0]?.steps).toBe(4);
});

describe('the KL weight', () => {
  it('the KL weight is off until the policy drifts beyond the target', () => {
    expect(nextKlBeta(0, 5, 20)).toBe(0);
    expect(nextKlBeta(0, 25, 20)).toBe(0);
    expect(nextKlBeta(0, 31, 20)).toBe(0.001);
  });

  it('the KL weight doubles above the target, halves below, and ends at 0', () => {
    expect(nextKlBeta(0.004, 31, 20)).toBe(0.008);
    expect(nextKlBeta(0.004, 20, 20)).toBe(0.004);
    expect(nextKlBeta(0.004, 13, 20)).toBe(0.002);
    expect(nextKlBeta(0.001, 13, 20)).toBe(0);
    expect(nextKlBeta(0.9, 100, 20)).toBe(1);
  });

  it('the KL weight stays what the recipe says where there is no target', () => {
    const recipe = recipeSchema.parse({ klBetaFirst: 0.02, klTargetNats: 0 });
    const chain = new BatchChain('backtalk');
    const batch = { policy: 'backtalk', number: 1, version: 'backtalk-v1', samples: [{ turn: 'turn_1' }] };
    chain.closed(BatchClosed.fromPartial({ ...batch, klBeta: 0.005 }), 1);
    expect(carriedState(chain, new VersionLine('backtalk'), recipe).klBeta).toBe(0.02);
    const report = { measurements: { kl_base: 5_000 }, samples: [] };
    chain.trained(WeightsTrained.fromPartial({ policy: 'backtalk', batch: 1, version: 'backtalk-v1', report }), 2);
    expect(carriedState(chain, new VersionLine('backtalk'), recipe).klBeta).toBe(0.02);
    expect(carriedState(chain, new VersionLine('backtalk'), recipeSchema.parse({ klBetaFirst: 0.02 })).klBeta).toBe(
      0.01,
    );
  });

  it('the KL weight stays where it is without a measurement', () => {
    expect(nextKlBeta(0.004, undefined, 20)).toBe(0.004);
    expect(nextKlBeta(0.004, Number.NaN, 20)).toBe(0.004);
  });
});
