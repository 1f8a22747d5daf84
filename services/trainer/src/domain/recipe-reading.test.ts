import { describe, expect, it } from 'vitest';

import { describeRecipe, readRecipe, notHonoured } from './recipe-reading.js';
import { recipePresets, type Recipe } from './recipe.js';

function read(document: unknown, overrides = ''): Recipe {
  const reading = readRecipe(document, overrides);
  if ('problems' in reading) throw new TypeError(reading.problems.join(' '));
  return reading.recipe;
}

function problems(document: unknown, overrides = ''): readonly string[] {
  const reading = readRecipe(document, overrides);
  return 'problems' in reading ? reading.problems : [];
}

describe('reading a recipe', () => {
  it('takes a preset as it is', () => {
    expect(read({ preset: 'tiny' })).toEqual(recipePresets.tiny.recipe);
    expect(read({})).toEqual(recipePresets.tiny.recipe);
    expect(read({ preset: 'small' })).toMatchObject({
      loraRank: 16,
      loraAlpha: 32,
      sampleTokensMax: 32_768,
      effective: 16,
    });
  });

  it('puts a document over its preset, and single overrides over both', () => {
    const recipe = read(
      { preset: 'tiny', stepBoundNats: 0.5, effective: 6 },
      'effective=4, learningRate=1e-4,method=opd',
    );
    expect(recipe).toEqual({
      ...recipePresets.tiny.recipe,
      stepBoundNats: 0.5,
      effective: 4,
      learningRate: 1e-4,
      method: 'opd',
    });
  });

  it('refuses an unknown name in one line with the nearest known one', () => {
    expect(problems({ preset: 'tiny', stepBound: 1 })).toEqual([
      'There is no name "stepBound" in recipes; the nearest is "stepBoundNats".',
    ]);
    expect(problems({}, 'learningrat=1')).toEqual([
      'There is no name "learningrat" in recipes; the nearest is "learningRate".',
    ]);
    expect(problems({ preset: 'tinny' })).toEqual(['There is no preset "tinny" in recipes; the nearest is "tiny".']);
  });

  it.each([
    ['learningRate=7', /^learningRate: .*<=1/],
    ['effective=2.5', /^effective: .*int/],
    ['method=dpo', /^method: .*"combined"/],
    ['loraRank=0', /^loraRank: .*>=1/],
    ['effective', /^"effective" is no override; give name=value\.$/],
  ])('refuses %s in one line that says what is wanted', (overrides, line) => {
    expect(problems({}, overrides)).toEqual([expect.stringMatching(line)]);
  });

  it('refuses what is no object', () => {
    expect(problems(['tiny'])).toEqual(['The recipe is no JSON object.']);
  });

  it.each([
    ['effective=2', /^effectiveMin \(4\) is more than effective \(2\)/],
    ['rewardVersions=9', /^rewardVersions \(9\) is more than distillVersions \(8\)/],
    ['clipLow=0.5', /^clipLow \(0.5\) is more than clipHigh \(0.28\)/],
    ['dualClip=1.2', /^dualClip \(1.2\) must be more than 1 \+ clipHigh/],
    ['answerTokensMax=4096', /^answerTokensMax \(4096\) is more than sampleTokensMax \(2048\)/],
    ['method=opd,weightOpd=0', /^Method opd has no weight/],
    ['effective=1024,anchorsPerEffective=8', /^anchorsPerEffective gives 8192 anchors/],
  ])('refuses %s: the numbers do not go together', (overrides, line) => {
    expect(problems({}, overrides)).toEqual([expect.stringMatching(line)]);
  });

  it.each(['tiny', 'small'] as const)('the preset %s passes its own checks', (name) => {
    expect(read(recipePresets[name].recipe)).toEqual(recipePresets[name].recipe);
  });

  it('describes each number with its value and its meaning, a line each', () => {
    const lines = describeRecipe(recipePresets.tiny.recipe).split('\n');
    expect(lines).toHaveLength(Object.keys(recipePresets.tiny.recipe).length);
    expect(lines).toContainEqual(expect.stringMatching(/^ {2}learningRate +0\.002 +Learning rate of AdamW\.$/));
    for (const line of lines) expect(line).toMatch(/^ {2}\w+ +\S+ +[A-Z].*\.$/);
  });
});

const { tiny, small, remote } = recipePresets;

describe('what a training service cannot honour', () => {
  it('a training service honours the preset that is made for it, and the training worker all of them', () => {
    expect(notHonoured('tinker', remote.recipe)).toEqual([]);
    expect(notHonoured('torch', tiny.recipe)).toEqual([]);
  });

  it('a training service honours nothing that looks at whole distributions, at answers of before, or at another temperature', () => {
    expect(notHonoured('tinker', { ...tiny.recipe, teacher: 'ema' })).toEqual([
      'opdForm=sampled',
      'klForm=sampled',
      'teacher=base',
      'offPolicy=drop',
      'optimizerSteps=1',
      'onlyTemperature=1',
    ]);
    expect(notHonoured('tinker', small.recipe)).toEqual([
      'opdForm=sampled',
      'klForm=sampled',
      'offPolicy=drop',
      'optimizerSteps=1',
      'onlyTemperature=1',
    ]);
  });

  it('terms that are not taken need not be honoured', () => {
    const rewarded = {
      ...small.recipe,
      method: 'binary',
      teacher: 'ema',
      klTargetNats: 0,
      onlyTemperature: 1,
      optimizerSteps: 1,
      offPolicy: 'drop',
    } as const;
    expect(notHonoured('tinker', rewarded)).toEqual([]);
    expect(notHonoured('tinker', { ...rewarded, klBetaFirst: 0.02 })).toEqual(['klForm=sampled']);
  });
});
