// Candidates and what they are weighed by, for tests of the domain.
import { candidateOf, type Candidate } from '../domain/candidate.js';
import { recipePresets, type Recipe } from '../domain/recipe.js';
import type { LearningContext } from '../domain/sample-worth.js';
import { completedTurn, judgedTurn, openedTurn, type TurnShape } from './turns.js';

export function candidate(shape: TurnShape, sequence = 1, timeMs = 0): Candidate {
  const facts = { opened: openedTurn(shape), completed: completedTurn(shape), continued: undefined };
  return candidateOf({ message: judgedTurn(shape), sequence, timeMs }, facts, recipePresets.tiny.recipe);
}

export function recipeWith(values: Partial<Recipe> = {}): Recipe {
  return { ...recipePresets.tiny.recipe, ...values };
}

export function learningContext(context: Partial<LearningContext> = {}): LearningContext {
  return {
    lessons: [],
    baselines: [],
    steps: [],
    nowMs: 0,
    readSinceMs: -Infinity,
    versionsBack: () => 0,
    versionsAfter: () => 0,
    ...context,
  };
}
