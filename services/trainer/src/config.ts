// The trainer's settings, with the laptop's defaults, and its recipe: the one document with all numbers of training.
import {
  baseSettings,
  inheritedEnvironment,
  installationSettings,
  kitErrors,
  setting,
  settings,
  type ConfigOf,
} from '@backtalk/kit';
import { readFileSync } from 'node:fs';

import { anchorsMax, type Recipe } from './domain/recipe.js';
import { nearestName, notHonoured, readRecipe, trainingBackends, type RecipeReading } from './domain/recipe-reading.js';

export { recipePresets, type Recipe } from './domain/recipe.js';
export { describeRecipe, type RecipeReading } from './domain/recipe-reading.js';
export { recipeInPlan } from './domain/replay-plan.js';

export const recipeSettings = {
  recipe: setting.string('BACKTALK_RECIPE', {
    description:
      'All numbers of training: a preset (`tiny`, `small`, `remote`), or the path of a JSON file; `--help` shows them.',
    default: 'tiny',
  }),
  recipeSet: setting.string('BACKTALK_RECIPE_SET', {
    description: 'Numbers of the recipe that differ here, such as `effective=4,learningRate=1e-4`.',
    default: '',
  }),
};

const shape = {
  natsUrl: baseSettings.natsUrl,
  natsUser: baseSettings.natsUser,
  natsPassword: baseSettings.natsPassword,
  healthAddress: baseSettings.healthAddress,
  logLevel: baseSettings.logLevel,
  ackWaitMs: baseSettings.ackWaitMs,
  instance: baseSettings.instance,
  policies: baseSettings.policies,
  ...installationSettings,
  engineHosts: baseSettings.engineHosts,
  trainerToTraining: baseSettings.trainerToTraining,
  trainingWorkers: setting.addresses('BACKTALK_TRAINING_WORKER', {
    description:
      'gRPC address of the training worker, or of several, with commas between: each takes one step at a time.',
    default: '127.0.0.1:30026',
  }),
  engineKey: setting.string('BACKTALK_ENGINE_KEY', {
    description: 'Key that engines ask for, which render the prompts of training; empty: none.',
    default: '',
    secret: true,
  }),
  judgeBackend: baseSettings.judgeBackend,
  judgeUrls: baseSettings.judgeUrls,
  judgeDialect: baseSettings.judgeDialect,
  judgeModel: baseSettings.judgeModel,
  judgeKey: setting.string('BACKTALK_JUDGE_KEY', {
    description:
      'Key of the engines of BACKTALK_JUDGE_URL, which get no other; empty where they ask for none. Engines that are found by their leases get BACKTALK_ENGINE_KEY.',
    default: '',
    secret: true,
  }),
  ...recipeSettings,
  trainingBackend: setting.oneOf('BACKTALK_TRAINING_BACKEND', trainingBackends, {
    description:
      "What takes the steps behind the training workers, as theirs says: `torch`, or `tinker`, a service with Tinker's API. A recipe that it cannot honour stops the start.",
    default: 'torch',
  }),
  seed: setting.integer('BACKTALK_SEED', {
    description: 'Varies the seeds of steps: runs that should differ are given different ones.',
    default: 0,
    min: 0,
  }),
  pendingMax: setting.integer('BACKTALK_PENDING_MAX', {
    description: 'Judged turns held at once; the rest waits in the log.',
    default: 2_000,
    min: 16,
    max: 100_000,
  }),
  stepDeadlineMs: setting.durationMs('BACKTALK_STEP_DEADLINE', {
    description: 'How long one step may take.',
    default: '1h',
    min: 1_000,
  }),
  retryMaxMs: setting.durationMs('BACKTALK_STEP_RETRY_MAX', {
    description: 'Longest pause before a step that could not be taken is tried again.',
    default: '15s',
    min: 10,
    max: 600_000,
  }),
  sweepEveryMs: setting.durationMs('BACKTALK_SWEEP_EVERY', {
    description: 'How often files of old versions are swept; the first time a minute after it leads.',
    default: '1h',
    min: 1_000,
  }),
  sweepGraceMs: setting.durationMs('BACKTALK_SWEEP_GRACE', {
    description: 'How old a version must be before its files may go.',
    default: '24h',
    min: 0,
  }),
};

export type TrainerConfig = ConfigOf<typeof shape>;

/** A recipe that cannot be read, or that never closes a batch here, stops the start. */
export const trainerSettings = settings(shape, (config) => {
  const reading = readingOf(config);
  return 'problems' in reading ? reading.problems : [];
});

/** @param nameOrPath name of a preset, or path of a JSON file */
export function loadRecipe(nameOrPath: string, overrides: string): RecipeReading {
  if (!/[/\\]|\.json$/.test(nameOrPath)) return readRecipe({ preset: nameOrPath }, overrides);
  try {
    const document: unknown = JSON.parse(readFileSync(nameOrPath, 'utf8'));
    return readRecipe(document, overrides);
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    return { problems: [`The recipe ${nameOrPath} cannot be read: ${reason}`] };
  }
}

export function recipeOf(config: RecipeConfig): Recipe {
  const reading = readingOf(config);
  if ('problems' in reading) throw kitErrors.configInvalid({ problems: reading.problems });
  return reading.recipe;
}

type RecipeConfig = Pick<TrainerConfig, 'recipe' | 'recipeSet' | 'pendingMax' | 'trainingBackend'>;

function readingOf({ recipe: name, recipeSet, pendingMax, trainingBackend }: RecipeConfig): RecipeReading {
  const reading = loadRecipe(name, recipeSet);
  if ('problems' in reading) return reading;
  const otherwise = notHonoured(trainingBackend, reading.recipe);
  if (otherwise.length > 0) {
    const advice = `set BACKTALK_RECIPE=remote, or in BACKTALK_RECIPE_SET ${otherwise.join(',')}`;
    return { problems: [`BACKTALK_TRAINING_BACKEND=${trainingBackend} cannot honour the recipe ${name}: ${advice}.`] };
  }
  const most = reading.recipe.effective + anchorsMax(reading.recipe);
  if (pendingMax >= most) return reading;
  return { problems: [`BACKTALK_PENDING_MAX (${pendingMax}) is less than the ${most} turns of one full batch.`] };
}

/** Variables of earlier versions whose names say little about what became of them. */
const renamed: Readonly<Record<string, string>> = {
  BACKTALK_BATCH_SIZE: 'effective',
  BACKTALK_BATCH_MIN: 'effectiveMin',
  BACKTALK_BATCH_WAIT: 'waitMs',
  BACKTALK_BATCH_ANCHORS: 'anchorsPerEffective',
  BACKTALK_BATCH_SETTLE_AT: 'settleAtTurns',
  BACKTALK_STALE_REWARD: 'rewardVersions',
  BACKTALK_STALE_DISTILL: 'distillVersions',
  BACKTALK_STALE_LOG_RATIO: 'staleLogRatioNats',
  BACKTALK_LESSON_SCOPE: 'lessonScope',
  BACKTALK_LESSON_LEARNED: 'learnedShare',
};

/** Variables that are set and that nothing reads any more, each with the name that it has in the recipe. */
export function retiredVariables(environment = inheritedEnvironment()): { variable: string; recipeName: string }[] {
  return Object.keys(environment).flatMap((variable) => {
    const [, rest] = /^BACKTALK_TRAIN_(.+)$/.exec(variable) ?? [];
    const recipeName = rest === undefined ? renamed[variable] : nearestName(rest.replaceAll('_', ''));
    return recipeName === undefined ? [] : [{ variable, recipeName }];
  });
}
