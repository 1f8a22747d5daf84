// The trainer as a process. `--help` shows the recipe too.
import { readConfig, run } from '@backtalk/kit';

import { describeRecipe, loadRecipe, recipeSettings, trainerSettings } from './config.js';
import { createTrainer } from './service.js';

if (process.argv.includes('--help')) {
  const { recipe, recipeSet } = readConfig(recipeSettings);
  const reading = loadRecipe(recipe, recipeSet);
  const text = 'recipe' in reading ? describeRecipe(reading.recipe) : reading.problems.join('\n');
  process.stdout.write(`The recipe (BACKTALK_RECIPE=${recipe}):\n\n${text}\n\n`);
}

await run({
  name: 'trainer',
  config: trainerSettings,
  create: (config, { fail }) => createTrainer(config, { fail }),
});
