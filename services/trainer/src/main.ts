// The trainer as a process. `--help` shows the recipe too.
import { runProcess } from '@backtalk/kit/process';

await runProcess(async () => {
  const [{ readConfig }, { describeRecipe, loadRecipe, recipeSettings, trainerSettings }, { createTrainer }] =
    await Promise.all([import('@backtalk/kit'), import('./config.js'), import('./service.js')]);
  if (process.argv.includes('--help')) {
    const { recipe, recipeSet } = readConfig(recipeSettings);
    const reading = loadRecipe(recipe, recipeSet);
    const text = 'recipe' in reading ? describeRecipe(reading.recipe) : reading.problems.join('\n');
    process.stdout.write(`The recipe (BACKTALK_RECIPE=${recipe}):\n\n${text}\n\n`);
  }
  return {
    name: 'trainer',
    config: trainerSettings,
    create: (config, { fail }) => createTrainer(config, { fail }),
  };
});
