// The recipe: all numbers by which batches are made and steps are taken, as one document, and its presets.
// It needs nothing but zod, so that tools can show it without a service.
import { z } from 'zod';

const number = (least: number, most: number, meaning: string) => z.number().min(least).max(most).describe(meaning);
const whole = (least: number, most: number, meaning: string) => z.int().min(least).max(most).describe(meaning);
const oneOf = <const V extends readonly [string, ...string[]]>(values: V, meaning: string) =>
  z.enum(values).describe(meaning);

const method = {
  method: oneOf(['binary', 'opd', 'combined'], 'Which signals train: verdicts (binary), hints (opd) or both.'),
  opdForm: oneOf(
    ['sampled', 'full'],
    'How distillation compares with the teacher: at sampled tokens, or over the whole vocabulary.',
  ),
  divergence: oneOf(['reverse_kl', 'forward_kl', 'jsd'], 'Divergence of the full form.'),
  jsdBeta: number(0.01, 0.99, 'Mixture of the JSD.'),
  weightRl: number(0, 100, 'Weight of the reward term.'),
  weightOpd: number(0, 100, 'Weight of the distillation term.'),
  baseline: oneOf(
    ['running', 'none'],
    "What is subtracted from a verdict: the user's running mean of earlier batches, or nothing.",
  ),
  hintPlace: oneOf(
    ['human', 'system'],
    "Where the teacher's hints go: behind the last human message, or into the system message.",
  ),
};

const step = {
  loraRank: whole(1, 512, 'Rank of the adapter; fixed for a policy at its first step.'),
  loraAlpha: whole(1, 1_024, 'Alpha of the adapter.'),
  learningRate: number(1e-9, 1, 'Learning rate of AdamW.'),
  adamBeta1: number(0, 0.9999, 'First moment of AdamW.'),
  adamBeta2: number(0, 0.99999, 'Second moment of AdamW.'),
  weightDecay: number(0, 1, 'Weight decay of AdamW.'),
  gradientClip: number(1e-6, 1e6, 'Largest gradient norm.'),
  clipLow: number(0, 0.99, 'Lower clip of the trust region.'),
  clipHigh: number(0, 10, 'Upper clip of the trust region.'),
  dualClip: number(1.01, 100, 'Dual clip for negative advantages.'),
  opdAdvantageClipNats: number(0, 1_000, "Bound of the sampled form's advantages; 0 is none."),
  stepBoundNats: number(0, 1_000, 'How far one step may move the policy, nats an answer; 0 is no bound.'),
  klForm: oneOf(['full', 'sampled'], 'How the KL to the base is computed.'),
  klBetaFirst: number(
    0,
    1,
    'Weight of the KL to the base at the first step; it adapts to the target. 0 is off until the target is passed.',
  ),
  klTargetNats: number(0.001, 100_000, 'Drift from the base that is aimed for at most, nats an answer.'),
  answerTokensMax: whole(1, 131_072, 'At most this many tokens of each answer are trained on.'),
  sampleTokensMax: whole(16, 1_048_576, 'Longest prompt and answer together; longer samples are dropped.'),
  microBatchTokens: whole(16, 16_777_216, 'Tokens of one micro-batch.'),
  optimizerSteps: whole(1, 64, 'Optimiser steps for each batch.'),
  meanAnswerTokens: number(
    0,
    131_072,
    "The normaliser's constant length, fixed at a policy's first step; 0 takes the mean of that batch.",
  ),
};

const batch = {
  effective: whole(1, 1_024, 'Effective samples of a full batch.'),
  effectiveMin: whole(1, 1_024, 'Effective samples that suffice when the oldest has waited long enough.'),
  waitMs: whole(100, 31_536_000_000, 'How long the oldest effective sample waits for a full batch.'),
  anchorsPerEffective: number(
    0,
    8,
    'Turns without a signal that are kept as anchors while a lesson is active, for each effective sample.',
  ),
  settleAtTurns: whole(
    1,
    10_000,
    'Turns that will not be trained on are settled in a fact of their own from this many on.',
  ),
  rewardVersions: whole(0, 1_000, 'Versions back from which a verdict still counts.'),
  distillVersions: whole(0, 1_000, 'Versions back from which full distillation is still done.'),
  staleLogRatioNats: number(
    0,
    20,
    'Mean |log ratio| between sampler and present weights, above which an answer gives no reward and no sampled distillation; 0 is no bound.',
  ),
  lessonScope: oneOf(
    ['user', 'policy'],
    'Whose samples a lesson holds for: those of the user who gave it, or all of the policy.',
  ),
  learnedNats: number(
    0,
    1_000,
    'Divergence to the teacher, nats an answer, at which a lesson is left alone after two batches.',
  ),
};

export const recipeSchema = z.strictObject({ ...method, ...step, ...batch });

export type Recipe = Readonly<z.infer<typeof recipeSchema>>;
export type RecipeName = keyof Recipe;
export type LessonScope = Recipe['lessonScope'];

const tiny: Recipe = {
  method: 'combined',
  opdForm: 'full',
  divergence: 'reverse_kl',
  jsdBeta: 0.5,
  weightRl: 0.1,
  weightOpd: 1,
  baseline: 'running',
  hintPlace: 'human',
  loraRank: 8,
  loraAlpha: 16,
  learningRate: 5e-4,
  adamBeta1: 0.9,
  adamBeta2: 0.98,
  weightDecay: 0,
  gradientClip: 1,
  clipLow: 0.2,
  clipHigh: 0.28,
  dualClip: 3,
  opdAdvantageClipNats: 2,
  stepBoundNats: 1,
  klForm: 'full',
  klBetaFirst: 0,
  klTargetNats: 20,
  answerTokensMax: 32,
  sampleTokensMax: 2_048,
  microBatchTokens: 512,
  optimizerSteps: 1,
  meanAnswerTokens: 40,
  effective: 8,
  effectiveMin: 4,
  waitMs: 600_000,
  anchorsPerEffective: 1,
  settleAtTurns: 32,
  rewardVersions: 4,
  distillVersions: 8,
  staleLogRatioNats: 0.1,
  lessonScope: 'user',
  learnedNats: 2,
};

export interface Preset {
  readonly about: string;
  readonly recipe: Recipe;
}

export const recipePresets: Readonly<Record<'tiny' | 'small', Preset>> = {
  tiny: { about: 'Models up to 0.3B on a laptop: the numbers that are measured here.', recipe: tiny },
  small: {
    about: 'Models up to 2B: the numbers of the published methods. Not measured here.',
    recipe: {
      ...tiny,
      weightRl: 1,
      loraRank: 16,
      loraAlpha: 32,
      learningRate: 2e-4,
      stepBoundNats: 0.5,
      effective: 16,
    },
  },
};

/** Anchors that a full batch takes at most. */
export function anchorsMax({ effective, anchorsPerEffective }: Recipe): number {
  return Math.round(effective * anchorsPerEffective);
}
