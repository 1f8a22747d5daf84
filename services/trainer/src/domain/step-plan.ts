// How a step is taken, whatever its samples are: one canonical document, stored under its digest before a batch names it, so that a
// repeated step follows the same plan even when the configuration has changed in between.
import { isJsonObject, sha256Hex } from '@backtalk/kit';
import { TrainingConfig } from '@backtalk/proto/training';

import type { Recipe } from './recipe.js';
import { rehearsalQuestions } from './rehearsal-questions.js';

export interface StepPlan {
  readonly training: TrainingConfig;
  readonly probePrompts: readonly Uint8Array[];
  /** Lessons are rehearsed on them; batches name them by number, from 1. */
  readonly rehearsalQuestions: readonly string[];
}

export interface StoredPlan {
  readonly bytes: Uint8Array;
  readonly digest: string;
}

/** Every version is asked the same, for parity and drift. They are part of the plan: changing one changes its digest. */
const probeQuestions: readonly string[] = [
  'What should I pack for a weekend by the sea?',
  'How do I boil an egg so that the yolk stays soft?',
  'Give me an idea for a birthday present for my grandmother.',
  'How does a refrigerator keep food cold?',
];

/** What the worker gets of a recipe. */
export function trainingOf(recipe: Recipe): TrainingConfig {
  return TrainingConfig.fromPartial({
    ...recipe,
    opdAdvantageClip: recipe.opdAdvantageClipNats,
    stepBound: recipe.stepBoundNats,
    // It changes from batch to batch and stands in the batch itself.
    klBeta: 0,
    maxAnswerTokens: recipe.answerTokensMax,
    maxTokens: recipe.sampleTokensMax,
    // Where memory holds but a short sample, it holds no larger micro-batch of shorter ones.
    microBatchTokens: Math.min(recipe.microBatchTokens, recipe.sampleTokensMax),
    stalenessMax: recipe.staleLogRatioNats,
    essMin: recipe.essMin,
    maskedShareMax: recipe.maskedShareMax,
  });
}

/** The whole recipe stands beside what the worker gets: the digest names all numbers, and a reader finds them. */
export function planOf(recipe: Recipe): StoredPlan {
  const training = trainingOf(recipe);
  const document = {
    training: TrainingConfig.toJSON(training),
    probePrompts: probeQuestions.map((content) => JSON.stringify([{ role: 'user', content }])),
    ...(recipe.rehearsalSteps === 0 ? {} : { rehearsalQuestions }),
    recipe,
  };
  const bytes = new TextEncoder().encode(JSON.stringify(document));
  return { bytes, digest: sha256Hex(bytes) };
}

/** Plans of earlier versions hold no recipe. */
export function decodePlan(bytes: Uint8Array): StepPlan | undefined {
  const document: unknown = JSON.parse(new TextDecoder().decode(bytes));
  if (!isJsonObject(document) || !isJsonObject(document['training'])) return undefined;
  const prompts: unknown = document['probePrompts'];
  if (!Array.isArray(prompts)) return undefined;
  const questions: unknown = document['rehearsalQuestions'];
  return {
    training: TrainingConfig.fromJSON(document['training']),
    probePrompts: prompts
      .filter((prompt) => typeof prompt === 'string')
      .map((prompt) => new TextEncoder().encode(prompt)),
    rehearsalQuestions: Array.isArray(questions) ? questions.filter((question) => typeof question === 'string') : [],
  };
}
