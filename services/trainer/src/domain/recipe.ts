// The recipe: all numbers by which batches are made and steps are taken, as one document, and its presets.
// It needs nothing but zod, so that tools can show it without a service.
import { z } from 'zod';

/** Each row: the value of the preset `tiny`, the bounds, the meaning. */
const number = (value: number, least: number, most: number, meaning: string) =>
  z.number().min(least).max(most).default(value).describe(meaning);
const whole = (value: number, least: number, most: number, meaning: string) =>
  z.int().min(least).max(most).default(value).describe(meaning);
const oneOf = <const V extends readonly [string, ...string[]]>(value: V[number], values: V, meaning: string) =>
  z.enum(values).default(value).describe(meaning);

const method = {
  method: oneOf('combined', ['binary', 'opd', 'combined'], 'Which signals train: verdicts, hints, or both.'),
  opdForm: oneOf(
    'hybrid',
    ['sampled', 'topk', 'full', 'hybrid'],
    'Where the teacher is compared: at sampled tokens, at the likeliest and a tail, in full, or in full and on answers of its own too.',
  ),
  divergence: oneOf(
    'jeffreys',
    ['reverse_kl', 'forward_kl', 'jeffreys', 'jsd'],
    'Divergence of the full form, and of own answers in the hybrid; forward_kl and jeffreys also teach what the model never says by itself.',
  ),
  teacher: oneOf(
    'base',
    ['base', 'current', 'ema', 'other'],
    'Who is shown the hints: the base, the policy as each step finds it, its average over the versions, or another model beside it.',
  ),
  emaDecay: number(0.9, 0, 0.9999, 'Of that average, what each version leaves of the one before; for the teacher ema.'),
  toldShare: number(
    0.5,
    0.05,
    1,
    'Of the taught samples, those that the teacher answers itself, too, in the form hybrid.',
  ),
  distillShare: number(
    1,
    0.01,
    1,
    "Share of each answer's tokens that is distilled, from the first on; one token at least.",
  ),
  offPolicy: oneOf(
    'answer_anew',
    ['answer_anew', 'drop'],
    'An answer that the policy would hardly give any more: where there is a teacher, the policy answers anew in the worker, or it is dropped.',
  ),
  jsdBeta: number(0.5, 0.01, 0.99, 'Mixture of the JSD.'),
  weightRl: number(0.1, 0, 100, 'Weight of the reward term.'),
  weightOpd: number(1, 0, 100, 'Weight of the distillation term.'),
  stepReward: oneOf(
    'integrated',
    ['integrated', 'outcome'],
    "Reward of a step of an attempt at a task: the outcome and the mean of the step's votes, or the outcome alone.",
  ),
  baseline: oneOf('running', ['running', 'none'], "Subtracted from a verdict: the user's running mean, or nothing."),
  hintPlace: oneOf('human', ['human', 'system'], "Where the teacher's hints go: last human message, or system."),
};

const step = {
  loraRank: whole(8, 1, 512, 'Rank of the adapter; fixed for a policy at its first step.'),
  loraAlpha: whole(16, 1, 1_024, 'Alpha of the adapter; fixed for a policy at its first step.'),
  learningRate: number(2e-3, 1e-9, 1, 'Learning rate of AdamW.'),
  adamBeta1: number(0.9, 0, 0.9999, 'First moment of AdamW.'),
  adamBeta2: number(0.98, 0, 0.99999, 'Second moment of AdamW.'),
  weightDecay: number(0, 0, 1, 'Weight decay of AdamW.'),
  gradientClip: number(1, 1e-6, 1e6, 'Largest gradient norm.'),
  clipLow: number(0.2, 0, 0.99, 'Lower clip of the trust region.'),
  clipHigh: number(0.28, 0, 10, 'Upper clip of the trust region.'),
  dualClip: number(3, 1.01, 100, 'Dual clip for negative advantages.'),
  opdAdvantageClipNats: number(2, 0, 1_000, 'Bound of the advantages of the forms sampled and topk; 0 is none.'),
  topK: whole(20, 1, 4_096, 'Likeliest tokens of policy and teacher that stand alone in the form topk.'),
  stepBoundNats: number(40, 0, 1_000, 'How far a batch may move the policy, nats an answer; 0 is no bound.'),
  klForm: oneOf('full', ['full', 'sampled'], 'How the KL to the base is computed.'),
  klBetaFirst: number(0, 0, 1, 'First weight of the KL to the base, 0 is off; it adapts to the target, if any.'),
  klTargetNats: number(20, 0, 100_000, 'Drift from the base that is aimed for at most, nats an answer; 0: no aim.'),
  answerTokensMax: whole(48, 1, 131_072, 'At most this many tokens of each answer are trained on.'),
  sampleTokensMax: whole(2_048, 16, 1_048_576, 'Longest prompt and answer together; longer samples are dropped.'),
  microBatchTokens: whole(512, 16, 16_777_216, 'Tokens of one micro-batch.'),
  optimizerSteps: whole(4, 1, 64, 'Optimiser steps for each batch.'),
  essMin: number(0.3, 0, 0.99, 'Effective share of samples below which a step takes no reward; 0 is no bound.'),
  maskedShareMax: number(0.2, 0, 0.99, 'Share of tokens out of the bounds above which it takes none; 0 is no bound.'),
  tooLongShareMax: number(0.5, 0, 1, 'Share of a batch that may be too long; above it no version is made.'),
  templateMismatchShareMax: number(0.5, 0, 1, 'Share of the hinted that may lose their teacher; above it none is.'),
  meanAnswerTokens: number(40, 0, 131_072, "The normaliser's length, fixed at the first step; 0: that batch's mean."),
};

const batch = {
  effective: whole(8, 1, 1_024, 'Effective samples of a full batch.'),
  effectiveMin: whole(4, 1, 1_024, 'Effective samples that suffice when the oldest has waited long enough.'),
  waitMs: whole(600_000, 100, 31_536_000_000, 'How long the oldest effective sample waits for a full batch.'),
  groupWaitMs: whole(
    3_600_000,
    100,
    31_536_000_000,
    'How long steps of an attempt wait for its outcome, and for the other attempts of their group after the last outcome.',
  ),
  anchorsPerEffective: number(1, 0, 8, 'Turns without a signal kept as anchors, for each effective one.'),
  settleAtTurns: whole(32, 1, 10_000, 'From this many on, turns that are not trained on get a fact of their own.'),
  rewardVersions: whole(4, 0, 1_000, 'Versions back from which a verdict still counts.'),
  distillVersions: whole(8, 0, 1_000, 'Versions back from which full distillation is still done.'),
  onlyTemperature: number(
    0,
    0,
    100,
    'Sampling temperature of the turns that are trained on, which a training service may know alone; 0 is any.',
  ),
  staleLogRatioNats: number(0.1, 0, 20, 'Mean |log ratio| above which an answer gives no reward; 0 is no bound.'),
  lessonScope: oneOf('user', ['user', 'policy'], 'Whose samples a lesson holds for: its own user, or all.'),
  rehearsalSteps: whole(
    24,
    0,
    64,
    "Optimiser steps that a lesson is taught without waiting for more turns, on questions of the trainer's own; 0 waits for turns.",
  ),
  learnedShare: number(0.9, 0.1, 1, 'Progress of a lesson, 0 to 1, at which it is learned once two versions have it.'),
};

export const recipeSchema = z.strictObject({ ...method, ...step, ...batch });

export type Recipe = Readonly<z.infer<typeof recipeSchema>>;
export type LessonScope = Recipe['lessonScope'];

const tiny: Recipe = recipeSchema.parse({});

const small: Recipe = {
  ...tiny,
  opdForm: 'full',
  weightRl: 1,
  loraRank: 16,
  loraAlpha: 32,
  learningRate: 2e-4,
  answerTokensMax: 1_024,
  sampleTokensMax: 32_768,
  microBatchTokens: 4_096,
  meanAnswerTokens: 0,
  effective: 16,
};

/** A training service takes one step a batch, knows sampled tokens alone, and answers nothing itself. */
const remote: Recipe = {
  ...small,
  opdForm: 'sampled',
  divergence: 'reverse_kl',
  klForm: 'sampled',
  loraRank: 32,
  onlyTemperature: 1,
  stepBoundNats: 0.5,
  optimizerSteps: 1,
  rehearsalSteps: 0,
  offPolicy: 'drop',
};

type PresetName = 'tiny' | 'small' | 'remote';

export const recipePresets: Readonly<Record<PresetName, { readonly about: string; readonly recipe: Recipe }>> = {
  tiny: { about: 'Models up to 0.3B on a laptop: the numbers that are measured here.', recipe: tiny },
  small: {
    about:
      'Models on a GPU: steps of the laptop at a fifth of its rate, told no answers, and samples as long as an agent makes them. Measured on the laptop’s model alone.',
    recipe: small,
  },
  remote: {
    about:
      "Models that a service with Tinker's API trains: small, as far as log-probabilities of sampled tokens carry it. Not measured here.",
    recipe: remote,
  },
};

/** Anchors that a full batch takes at most. */
export function anchorsMax({ effective, anchorsPerEffective }: Recipe): number {
  return Math.round(effective * anchorsPerEffective);
}
