// `recipe`: all numbers of training with their values and meanings. It needs no running machine.
import { inheritedEnvironment, kitErrors } from '@backtalk/kit';
import { describeRecipe, loadRecipe, recipePresets } from '@backtalk/trainer/recipe';
import type { Output } from '../output.js';

export function showRecipe(output: Output, nameOrPath: string | undefined, set: string | undefined): void {
  const environment = inheritedEnvironment();
  const name = nameOrPath ?? environment['BACKTALK_RECIPE'] ?? 'tiny';
  const reading = loadRecipe(name, set ?? environment['BACKTALK_RECIPE_SET'] ?? '');
  if ('problems' in reading) throw kitErrors.configInvalid({ problems: reading.problems });
  output.value({ name, recipe: reading.recipe });
  const about = Object.entries(recipePresets).find(([preset]) => preset === name)?.[1].about;
  output.line(`Recipe ${name}. ${about ?? ''}`.trimEnd());
  output.line('');
  output.line(describeRecipe(reading.recipe));
}
