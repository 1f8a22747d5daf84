import { readConfig } from '@backtalk/kit';
import { TemporaryDirectory } from '@backtalk/kit/testing';
import { writeFileSync } from 'node:fs';
import { afterAll, describe, expect, it } from 'vitest';

import { recipeOf, retiredVariables, trainerSettings } from './config.js';

const folder = new TemporaryDirectory('recipe');

afterAll(() => {
  folder.remove();
});

function recipeWith(environment: Record<string, string>) {
  return recipeOf(readConfig(trainerSettings, { BACKTALK_HEALTH_ADDRESS: '127.0.0.1:0', ...environment }));
}

describe('the recipe of a trainer', () => {
  it('a recipe is the preset tiny where nothing is set', () => {
    expect(recipeWith({})).toMatchObject({ learningRate: 2e-3, effective: 8, waitMs: 600_000 });
  });

  it('a recipe is read from a file, with single overrides above it', () => {
    const path = folder.join('mine.json');
    writeFileSync(path, JSON.stringify({ preset: 'small', stepBoundNats: 0.25 }));
    const recipe = recipeWith({ BACKTALK_RECIPE: path, BACKTALK_RECIPE_SET: 'effective=12' });
    expect(recipe).toMatchObject({ loraRank: 16, stepBoundNats: 0.25, effective: 12 });
  });

  it('a recipe that cannot be read stops the start, with the reason', () => {
    const path = folder.join('broken.json');
    writeFileSync(path, '{');
    for (const recipe of [path, folder.join('none.json'), 'tinny'])
      expect(() => recipeWith({ BACKTALK_RECIPE: recipe })).toThrow(
        expect.objectContaining({ code: 'config_invalid', message: expect.stringMatching(/^[^\n]+$/) as string }),
      );
  });

  it('a recipe that the training backend cannot honour stops the start, with what to set', () => {
    const elsewhere = { BACKTALK_TRAINING_BACKEND: 'tinker' };
    expect(() => recipeWith({ ...elsewhere, BACKTALK_RECIPE: 'small' })).toThrow(
      'BACKTALK_TRAINING_BACKEND=tinker cannot honour the recipe small: set BACKTALK_RECIPE=remote, or in BACKTALK_RECIPE_SET opdForm=sampled,klForm=sampled,offPolicy=drop,optimizerSteps=1,onlyTemperature=1.',
    );
    const set = 'opdForm=sampled,klForm=sampled,offPolicy=drop,optimizerSteps=1,onlyTemperature=1';
    expect(recipeWith({ ...elsewhere, BACKTALK_RECIPE: 'small', BACKTALK_RECIPE_SET: set }).loraRank).toBe(16);
    expect(recipeWith({ ...elsewhere, BACKTALK_RECIPE: 'remote' }).loraRank).toBe(32);
  });

  it('refuses a recipe where not even one batch of it is held', () => {
    const set = { BACKTALK_RECIPE_SET: 'effective=64', BACKTALK_PENDING_MAX: '100' };
    expect(() => recipeWith(set)).toThrow('BACKTALK_PENDING_MAX (100) is less than the 128 turns of one full batch.');
  });
});

describe('variables of earlier versions', () => {
  it.each([
    ['BACKTALK_TRAIN_LEARNING_RATE', 'learningRate'],
    ['BACKTALK_TRAIN_STEP_BOUND', 'stepBoundNats'],
    ['BACKTALK_TRAIN_KL_BETA', 'klBetaFirst'],
    ['BACKTALK_TRAIN_KL_TARGET', 'klTargetNats'],
    ['BACKTALK_TRAIN_OPD_ADVANTAGE_CLIP', 'opdAdvantageClipNats'],
    ['BACKTALK_TRAIN_ANSWER_TOKENS', 'answerTokensMax'],
    ['BACKTALK_TRAIN_MEAN_ANSWER_LENGTH', 'meanAnswerTokens'],
    ['BACKTALK_BATCH_SIZE', 'effective'],
  ])('%s is found, and %s is its name in the recipe', (variable, recipeName) => {
    expect(retiredVariables({ [variable]: '1' })).toEqual([{ variable, recipeName }]);
  });

  it('retired variables are not confused with variables that are read', () => {
    expect(retiredVariables({ BACKTALK_TRAINING_WORKER: 'a:1', BACKTALK_RECIPE: 'tiny' })).toEqual([]);
  });
});
