// How a step of the past is taken once more with another recipe: its plan as it was stored, but for what the other numbers change of
// it. What decides what a batch holds is refused by name: a replay takes batches as they were. Pure.
import { isJsonObject } from '@backtalk/kit';
import { TrainingConfig } from '@backtalk/proto/training';

import { readRecipe } from './recipe-reading.js';
import { recipeSchema, type Recipe } from './recipe.js';
import { decodePlan, trainingOf, type StepPlan } from './step-plan.js';

export type ReplayReading = { readonly plan: StepPlan } | { readonly problems: readonly string[] };

/**
 * @param stored bytes of the plan of the step
 * @param overrides `name=value,name=value`, as in `BACKTALK_RECIPE_SET`
 */
export function replayPlan(stored: Uint8Array, overrides: string): ReplayReading {
  const plan = decodePlan(stored);
  if (plan === undefined) return { problems: ['The plan of the step cannot be read.'] };
  const own = numbersIn(stored);
  if (own === undefined)
    return { problems: ['The plan of the step does not hold its recipe: it is of an older release.'] };
  const before = readRecipe(own, '');
  const after = readRecipe(own, overrides);
  if ('problems' in after) return after;
  if ('problems' in before) return before;
  const changed = changesOf(before.recipe, after.recipe);
  const idle = changed.filter((change) => Object.keys(trainingChanges(before.recipe, change)).length === 0);
  if (idle.length > 0)
    return {
      problems: idle
        .flatMap(Object.keys)
        .map((name) => `${name} has no part in a step: batches are taken as they were.`),
    };
  const training = TrainingConfig.fromPartial({ ...plan.training, ...trainingChanges(before.recipe, after.recipe) });
  return { plan: { ...plan, training } };
}

/** The recipe of a plan as it was stored; undefined where that is of an older release. */
export function recipeInPlan(stored: Uint8Array): Recipe | undefined {
  const reading = readRecipe(numbersIn(stored), '');
  return 'problems' in reading ? undefined : reading.recipe;
}

/** A name that is gone since is in no recipe of now; one that is new has no part in what a step was. */
function numbersIn(stored: Uint8Array): Record<string, unknown> | undefined {
  const document: unknown = JSON.parse(new TextDecoder().decode(stored));
  if (!isJsonObject(document) || !isJsonObject(document['recipe'])) return undefined;
  return Object.fromEntries(Object.entries(document['recipe']).filter(([name]) => name in recipeSchema.shape));
}

/** One number each. */
function changesOf(before: Recipe, after: Recipe): Partial<Recipe>[] {
  const were = new Map<string, unknown>(Object.entries(before));
  return Object.entries(after)
    .filter(([name, value]) => were.get(name) !== value)
    .map(([name, value]) => ({ [name]: value }));
}

function trainingChanges(before: Recipe, change: Partial<Recipe>): Partial<TrainingConfig> {
  const was = new Map<string, unknown>(Object.entries(trainingOf(before)));
  const now = Object.entries(trainingOf({ ...before, ...change }));
  return Object.fromEntries(now.filter(([name, value]) => was.get(name) !== value));
}
