// A recipe by the name of a preset or the path of a JSON file, with single overrides.
import { readFileSync } from 'node:fs';

import { describeRecipe, readRecipe, type RecipeReading } from './domain/recipe-reading.js';

export { recipePresets, type Recipe } from './domain/recipe.js';
export { describeRecipe, type RecipeReading };

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
