// `recipe`: all numbers of training with their values and meanings. It needs no running machine, unless asked with which a version was made.
import { FactReader, inheritedEnvironment, kitErrors } from '@backtalk/kit';
import { describeRecipe, loadRecipe, recipeInPlan, recipePresets } from '@backtalk/trainer/recipe';
import { withBroker } from '../connection.js';
import { cliErrors } from '../errors.js';
import type { Output } from '../output.js';
import type { CommandContext } from '../shell.js';
import { findStep } from './versions.js';

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
  if (nameOrPath !== undefined) return;
  output.line('');
  output.line(
    'npm start takes the preset that fits its model, and names it; --of VERSION shows what a version was made with.',
  );
}

/** With which numbers a version was made, whatever is in force now. */
export async function showRecipeOf(
  { connection, output }: CommandContext,
  version: string,
  preset: string | undefined,
): Promise<void> {
  if (preset !== undefined)
    throw cliErrors.badArgument({
      name: 'preset',
      value: preset,
      wanted: 'needed beside --of: leave one of the two out',
    });
  const recipe = await withBroker(connection, async (broker, blobs) => {
    const [, batch] = await findStep(new FactReader(broker, blobs), version);
    return recipeInPlan(await blobs.get(batch.configDigest));
  });
  if (recipe === undefined)
    throw cliErrors.nothingFound({ what: `recipe with ${version}, which is of an older release` });
  output.value({ version, recipe });
  output.line(`${version} was made with:`);
  output.line('');
  output.line(describeRecipe(recipe));
}
