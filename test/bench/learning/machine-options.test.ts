import type { BaseModel } from '@backtalk/deploy';
import { loadRecipe } from '@backtalk/trainer/recipe';
import { describe, expect, it } from 'vitest';
import { machineOptions, presetFor } from './machine-options.js';
import { recipeDigest } from './made-from.js';

const baseOf = (recipe: BaseModel['recipe']): BaseModel => ({
  name: 'a-model',
  folder: '/models/a-model',
  parameters: 6e8,
  recipe,
  reasons: [],
  contextTokens: 4_096,
  kvTokens: 16_384,
  kvBytes: 1e9,
  sampleTokens: 2_048,
});
const optionsOf = (base: BaseModel | undefined, recipe?: string) =>
  machineOptions({ base, device: undefined, seed: 7, ...(recipe === undefined ? {} : { recipe }) });

/** The recipe that a trainer reads out of its variables. */
function trainedWith(base: BaseModel | undefined, recipe?: string) {
  const { BACKTALK_RECIPE: name = '', BACKTALK_RECIPE_SET: set = '' } =
    optionsOf(base, recipe).environment?.['trainer'] ?? {};
  const reading = loadRecipe(name, set);
  return 'recipe' in reading ? reading.recipe : reading.problems;
}

describe('the machine of the learning experiment', () => {
  it.each([
    ['the laptop’s', undefined],
    ['a small', baseOf('tiny')],
    ['a large', baseOf('small')],
  ])('%s model is trained with the recipe that its results are kept under, whatever the shell says', (_, base) => {
    expect(trainedWith(base)).toEqual(presetFor(base));
  });

  it('results of one preset are never kept under another', () => {
    const [tiny, small] = [recipeDigest(presetFor(undefined)), recipeDigest(presetFor(baseOf('small')))];
    expect(recipeDigest(presetFor(baseOf('tiny')))).toBe(tiny);
    expect(small).not.toBe(tiny);
  });

  it('a model that is named is served and trained as a start with it does, and not by its folder alone', () => {
    const base = baseOf('small');
    expect(optionsOf(base).base).toBe(base);
    expect(optionsOf(undefined)).not.toHaveProperty('base');
  });

  it('a part has its numbers in the recipe, after those of its preset', () => {
    expect(trainedWith(baseOf('small'), 'rehearsalSteps=3,method=opd')).toMatchObject({
      rehearsalSteps: 3,
      method: 'opd',
      opdForm: 'full',
    });
  });
});
