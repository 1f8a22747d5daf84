import { isJsonObject } from '@backtalk/kit';
import { describe, expect, it } from 'vitest';

import { recipePresets } from './recipe.js';
import { replayPlan } from './replay-plan.js';
import { decodePlan, planOf } from './step-plan.js';

const { recipe } = recipePresets.tiny;
const stored = planOf(recipe).bytes;

function changed(bytes: Uint8Array, change: (document: Record<string, unknown>) => unknown): Uint8Array {
  const document: unknown = JSON.parse(new TextDecoder().decode(bytes));
  if (!isJsonObject(document)) expect.unreachable();
  return new TextEncoder().encode(JSON.stringify(change({ ...document })));
}

function trainingIn(bytes: Uint8Array, overrides: string) {
  const reading = replayPlan(bytes, overrides);
  if ('problems' in reading) throw new TypeError(reading.problems.join(' '));
  return reading.plan;
}

describe('the plan of a replay', () => {
  it('a plan stays as it was stored, but for what the other numbers change of it', () => {
    const before = decodePlan(stored);
    const { training, ...rest } = trainingIn(stored, 'learningRate=5e-4,stepBoundNats=7');
    expect(training).toEqual({ ...before?.training, learningRate: 5e-4, stepBound: 7 });
    expect(rest).toEqual({ probePrompts: before?.probePrompts, rehearsalQuestions: before?.rehearsalQuestions });
  });

  it('what a step of an older release did not know stays as it was', () => {
    const old = changed(stored, ({ training, recipe: own, ...rest }) => {
      if (!isJsonObject(training) || !isJsonObject(own)) expect.unreachable();
      const { topK: _newer, ...known } = own;
      return { ...rest, training: { ...training, topK: 0 }, recipe: { ...known, sinceRemoved: 3 } };
    });
    expect(trainingIn(old, 'learningRate=5e-4').training).toMatchObject({ topK: 0, learningRate: 5e-4 });
  });

  it('numbers that no step has a part in are refused by name, unless they stay as they are', () => {
    expect(replayPlan(stored, 'effective=9,learnedShare=.5,learningRate=1e-5')).toEqual({
      problems: [
        'effective has no part in a step: batches are taken as they were.',
        'learnedShare has no part in a step: batches are taken as they were.',
      ],
    });
    expect(replayPlan(stored, `effective=${String(recipe.effective)}`)).toMatchObject({ plan: decodePlan(stored) });
  });

  it('what recipes refuse is refused, and a plan that holds no recipe', () => {
    expect(replayPlan(stored, 'learningRate=-1')).toMatchObject({ problems: [expect.stringMatching(/^learningRate/)] });
    const bare = changed(stored, ({ recipe: _own, ...rest }) => rest);
    expect(replayPlan(bare, 'learningRate=1e-5')).toMatchObject({
      problems: [expect.stringContaining('older release')],
    });
  });
});
