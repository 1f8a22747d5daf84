// Reads a recipe from a document (`{ "preset": "tiny", "stepBoundNats": 0.5 }`) and single overrides (`effective=4,learningRate=1e-4`).
// Out: the whole recipe, or one line for each thing that is wrong. Nothing is guessed: an unknown name is refused.
import { z } from 'zod';

import { anchorsMax, recipePresets, recipeSchema, type Recipe } from './recipe.js';
import { isTaught } from './sample-worth.js';

export type RecipeReading = { readonly recipe: Recipe } | { readonly problems: readonly string[] };

const recipeNames: readonly string[] = Object.keys(recipeSchema.shape);
const presetNames = Object.keys(recipePresets);

export function readRecipe(document: unknown, overrides: string): RecipeReading {
  const parsed = z.record(z.string(), z.unknown()).safeParse(document);
  if (!parsed.success) return { problems: ['The recipe is no JSON object.'] };
  const { preset = 'tiny', ...own } = parsed.data;
  const base = Object.entries(recipePresets).find(([name]) => name === preset)?.[1];
  if (base === undefined) return { problems: [unknown('preset', String(preset), presetNames)] };
  const given: Record<string, unknown> = { ...own };
  const problems: string[] = [];
  for (const pair of overrides.split(',').filter((part) => part.trim() !== '')) {
    const [name = '', value = '', ...rest] = pair.split('=').map((part) => part.trim());
    if (value === '' || rest.length > 0) problems.push(`"${pair.trim()}" is no override; give name=value.`);
    else given[name] = Number.isNaN(Number(value)) ? value : Number(value);
  }
  for (const name of Object.keys(given)) if (!recipeNames.includes(name)) problems.push(unknown('name', name));
  if (problems.length > 0) return { problems };
  const recipe = recipeSchema.safeParse({ ...base.recipe, ...given });
  if (!recipe.success) {
    const problemLines = recipe.error.issues.map(({ path, message }) => {
      const reason = message.replace(/^Invalid (input|option): /, '');
      return `${String(path[0])}: ${reason}.`;
    });
    return { problems: problemLines };
  }
  const conflicts = checks.flatMap((check) => check(recipe.data) ?? []);
  return conflicts.length > 0 ? { problems: conflicts } : { recipe: recipe.data };
}

/** What must hold between the numbers; each gives the line that says what is wrong. */
const checks: readonly ((recipe: Recipe) => string | undefined)[] = [
  ({ effective, effectiveMin }) =>
    effectiveMin > effective
      ? `effectiveMin (${effectiveMin}) is more than effective (${effective}), a full batch.`
      : undefined,
  ({ rewardVersions, distillVersions }) =>
    rewardVersions > distillVersions
      ? `rewardVersions (${rewardVersions}) is more than distillVersions (${distillVersions}), after which a turn is stale.`
      : undefined,
  ({ clipLow, clipHigh }) =>
    clipLow > clipHigh ? `clipLow (${clipLow}) is more than clipHigh (${clipHigh}).` : undefined,
  ({ clipHigh, dualClip }) =>
    dualClip <= 1 + clipHigh
      ? `dualClip (${dualClip}) must be more than 1 + clipHigh (${1 + clipHigh}), or it acts before the clip.`
      : undefined,
  ({ answerTokensMax, sampleTokensMax }) =>
    answerTokensMax > sampleTokensMax
      ? `answerTokensMax (${answerTokensMax}) is more than sampleTokensMax (${sampleTokensMax}).`
      : undefined,
  ({ method, weightRl, weightOpd }) => {
    const weight = (method === 'opd' ? 0 : weightRl) + (method === 'binary' ? 0 : weightOpd);
    return weight === 0 ? `Method ${method} has no weight: set weightRl or weightOpd above 0.` : undefined;
  },
  (recipe) =>
    anchorsMax(recipe) > anchorsAtMost
      ? `anchorsPerEffective gives ${anchorsMax(recipe)} anchors a batch; at most ${anchorsAtMost} are taken.`
      : undefined,
];

/** A fact names every sample: more would not fit into a message. */
const anchorsAtMost = 2_048;

function unknown(what: string, given: string, known = recipeNames): string {
  return `There is no ${what} "${given}" in recipes; the nearest is "${nearestName(given, known)}".`;
}

/** By the pairs of letters that two names share: finds names that differ in an ending as well as slips of the pen. */
export function nearestName(given: string, known = recipeNames): string {
  const own = letterPairs(given);
  const likeness = (name: string): number => {
    const other = letterPairs(name);
    return [...own].filter((pair) => other.has(pair)).length / (own.size + other.size);
  };
  return known.reduce((best, name) => (likeness(name) > likeness(best) ? name : best), known[0] ?? '');
}

function letterPairs(name: string): ReadonlySet<string> {
  const text = ` ${name.toLowerCase()}`;
  return new Set(Array.from({ length: text.length - 1 }, (_, index) => text.slice(index, index + 2)));
}

/** Each number with its value and its meaning, a line each. */
export function describeRecipe(recipe: Recipe): string {
  const fields: [string, z.ZodType][] = Object.entries(recipeSchema.shape);
  const values = new Map<string, unknown>(Object.entries(recipe));
  const width = Math.max(...recipeNames.map((name) => name.length));
  return fields
    .map(
      ([name, field]) => `  ${name.padEnd(width)}  ${String(values.get(name)).padEnd(10)}  ${field.description ?? ''}`,
    )
    .join('\n');
}

/** "torch": the training worker itself; "tinker": a service with Tinker's API, which the worker asks. */
export const trainingBackends = ['torch', 'tinker'] as const;
export type TrainingBackend = (typeof trainingBackends)[number];

/** `name=value` of each number that would have to be otherwise. Such a service knows log-probabilities of sampled tokens at temperature 1, and no more. */
export function notHonoured(backend: TrainingBackend, recipe: Recipe): readonly string[] {
  if (backend === 'torch') return [];
  const { opdForm, klForm, klBetaFirst, klTargetNats, teacher, offPolicy, optimizerSteps, onlyTemperature } = recipe;
  const wanted: Readonly<Record<string, boolean>> = {
    'opdForm=sampled': !isTaught(recipe) || opdForm === 'sampled',
    'klForm=sampled': (klBetaFirst === 0 && klTargetNats === 0) || klForm === 'sampled',
    'teacher=base': !isTaught(recipe) || teacher === 'base',
    'offPolicy=drop': offPolicy === 'drop',
    'optimizerSteps=1': optimizerSteps === 1,
    'onlyTemperature=1': onlyTemperature === 1,
  };
  return Object.keys(wanted).filter((name) => wanted[name] === false);
}
