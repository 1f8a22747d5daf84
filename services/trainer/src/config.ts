// What the trainer may be told by its environment, with the laptop's defaults.
import { baseSettings, installationSettings, setting, type ConfigOf } from '@backtalk/kit';

const minuteMs = 60_000;

const training = {
  method: setting.oneOf('BACKTALK_TRAIN_METHOD', ['binary', 'opd', 'combined'] as const, {
    description: 'Which signals train: verdicts (binary), hints (opd) or both.',
    default: 'combined',
  }),
  opdForm: setting.oneOf('BACKTALK_TRAIN_OPD_FORM', ['sampled', 'full'] as const, {
    description: 'How distillation compares with the teacher: at sampled tokens, or over the whole vocabulary.',
    default: 'full',
  }),
  divergence: setting.oneOf('BACKTALK_TRAIN_DIVERGENCE', ['reverse_kl', 'forward_kl', 'jsd'] as const, {
    description: 'Divergence of the full form.',
    default: 'reverse_kl',
  }),
  jsdBeta: setting.number('BACKTALK_TRAIN_JSD_BETA', {
    description: 'Mixture of the JSD.',
    default: 0.5,
    min: 0.01,
    max: 0.99,
  }),
  weightRl: setting.number('BACKTALK_TRAIN_WEIGHT_RL', {
    description: 'Weight of the reward term.',
    default: 0.1,
    min: 0,
    max: 100,
  }),
  weightOpd: setting.number('BACKTALK_TRAIN_WEIGHT_OPD', {
    description: 'Weight of the distillation term.',
    default: 1,
    min: 0,
    max: 100,
  }),
  baseline: setting.oneOf('BACKTALK_TRAIN_BASELINE', ['running', 'none'] as const, {
    description: "What is subtracted from a verdict: the user's running mean of earlier batches, or nothing.",
    default: 'running',
  }),
  loraRank: setting.integer('BACKTALK_TRAIN_LORA_RANK', {
    description: 'Rank of the adapter.',
    default: 8,
    min: 1,
    max: 512,
  }),
  loraAlpha: setting.integer('BACKTALK_TRAIN_LORA_ALPHA', {
    description: 'Alpha of the adapter.',
    default: 16,
    min: 1,
    max: 1024,
  }),
  learningRate: setting.number('BACKTALK_TRAIN_LEARNING_RATE', {
    description: 'Learning rate of AdamW.',
    default: 5e-4,
    min: 1e-9,
    max: 1,
  }),
  adamBeta1: setting.number('BACKTALK_TRAIN_ADAM_BETA1', {
    description: 'First moment of AdamW.',
    default: 0.9,
    min: 0,
    max: 0.9999,
  }),
  adamBeta2: setting.number('BACKTALK_TRAIN_ADAM_BETA2', {
    description: 'Second moment of AdamW.',
    default: 0.98,
    min: 0,
    max: 0.99999,
  }),
  weightDecay: setting.number('BACKTALK_TRAIN_WEIGHT_DECAY', {
    description: 'Weight decay of AdamW.',
    default: 0,
    min: 0,
    max: 1,
  }),
  gradientClip: setting.number('BACKTALK_TRAIN_GRADIENT_CLIP', {
    description: 'Largest gradient norm.',
    default: 1,
    min: 1e-6,
    max: 1e6,
  }),
  clipLow: setting.number('BACKTALK_TRAIN_CLIP_LOW', {
    description: 'Lower clip of the trust region.',
    default: 0.2,
    min: 0,
    max: 0.99,
  }),
  clipHigh: setting.number('BACKTALK_TRAIN_CLIP_HIGH', {
    description: 'Upper clip of the trust region.',
    default: 0.28,
    min: 0,
    max: 10,
  }),
  dualClip: setting.number('BACKTALK_TRAIN_DUAL_CLIP', {
    description: 'Dual clip for negative advantages.',
    default: 3,
    min: 1.01,
    max: 100,
  }),
  opdAdvantageClip: setting.number('BACKTALK_TRAIN_OPD_ADVANTAGE_CLIP', {
    description: "Bound of the sampled form's advantages in nats; 0 is none.",
    default: 2,
    min: 0,
    max: 1000,
  }),
  stepBound: setting.number('BACKTALK_TRAIN_STEP_BOUND', {
    description: 'How far one step may move the policy, nats an answer; 0 is no bound.',
    default: 1,
    min: 0,
    max: 1000,
  }),
  klForm: setting.oneOf('BACKTALK_TRAIN_KL_FORM', ['full', 'sampled'] as const, {
    description: 'How the KL to the base is computed.',
    default: 'full',
  }),
  klBetaFirst: setting.number('BACKTALK_TRAIN_KL_BETA', {
    description:
      'Weight of the KL to the base at the first step; it adapts to the target. 0 is off until the target is passed.',
    default: 0,
    min: 0,
    max: 1,
  }),
  klTargetNats: setting.number('BACKTALK_TRAIN_KL_TARGET', {
    description: 'Drift from the base that is aimed for at most, nats an answer.',
    default: 20,
    min: 0.001,
    max: 100_000,
  }),
  answerTokensMax: setting.integer('BACKTALK_TRAIN_ANSWER_TOKENS', {
    description: 'At most this many tokens of each answer are trained on.',
    default: 32,
    min: 1,
    max: 131_072,
  }),
  sampleTokensMax: setting.integer('BACKTALK_TRAIN_SAMPLE_TOKENS', {
    description: 'Longest prompt and answer together; longer samples are dropped.',
    default: 2_048,
    min: 16,
    max: 1_048_576,
  }),
  microBatchTokens: setting.integer('BACKTALK_TRAIN_MICRO_BATCH_TOKENS', {
    description: 'Tokens of one micro-batch.',
    default: 512,
    min: 16,
    max: 16_777_216,
  }),
  optimizerSteps: setting.integer('BACKTALK_TRAIN_OPTIMIZER_STEPS', {
    description: 'Optimiser steps for each batch.',
    default: 1,
    min: 1,
    max: 64,
  }),
  hintPlace: setting.oneOf('BACKTALK_TRAIN_HINT_PLACE', ['human', 'system'] as const, {
    description: "Where the teacher's hints go: behind the last human message, or into the system message.",
    default: 'human',
  }),
  meanAnswerLength: setting.number('BACKTALK_TRAIN_MEAN_ANSWER_LENGTH', {
    description:
      "The normaliser's constant length in tokens, fixed at a policy's first step; 0 takes the mean of that batch.",
    default: 40,
    min: 0,
    max: 131_072,
  }),
};

const batches = {
  seed: setting.integer('BACKTALK_SEED', {
    description: 'Varies the seeds of steps: runs that should differ are given different ones.',
    default: 0,
    min: 0,
  }),
  effective: setting.integer('BACKTALK_BATCH_SIZE', {
    description: 'Effective samples of a full batch.',
    default: 8,
    min: 1,
    max: 1_024,
  }),
  effectiveMin: setting.integer('BACKTALK_BATCH_MIN', {
    description: 'Effective samples that suffice when the oldest has waited long enough.',
    default: 4,
    min: 1,
    max: 1_024,
  }),
  waitMs: setting.durationMs('BACKTALK_BATCH_WAIT', {
    description: 'How long the oldest effective sample waits for a full batch.',
    default: '10m',
    min: 100,
  }),
  anchorsPerEffective: setting.number('BACKTALK_BATCH_ANCHORS', {
    description: 'Turns without a signal that are kept as anchors while a lesson is active, for each effective sample.',
    default: 1,
    min: 0,
    max: 8,
  }),
  settleAt: setting.integer('BACKTALK_BATCH_SETTLE_AT', {
    description: 'Turns that will not be trained on are settled in a fact of their own from this many on.',
    default: 32,
    min: 1,
    max: 10_000,
  }),
  rewardVersions: setting.integer('BACKTALK_STALE_REWARD', {
    description: 'Versions back from which a verdict still counts.',
    default: 4,
    min: 0,
    max: 1_000,
  }),
  distillVersions: setting.integer('BACKTALK_STALE_DISTILL', {
    description: 'Versions back from which full distillation is still done.',
    default: 8,
    min: 0,
    max: 1_000,
  }),
  staleLogRatio: setting.number('BACKTALK_STALE_LOG_RATIO', {
    description:
      'Mean |log ratio| between sampler and present weights, above which an answer gives no reward and no sampled distillation; 0 is no bound.',
    default: 0.1,
    min: 0,
    max: 20,
  }),
  lessonScope: setting.oneOf('BACKTALK_LESSON_SCOPE', ['user', 'policy'] as const, {
    description: 'Whose samples a lesson holds for: those of the user who gave it, or all of the policy.',
    default: 'user',
  }),
  learnedNats: setting.number('BACKTALK_LESSON_LEARNED', {
    description: 'Divergence to the teacher, nats an answer, at which a lesson is left alone after two batches.',
    default: 2,
    min: 0,
    max: 1_000,
  }),
  pendingMax: setting.integer('BACKTALK_PENDING_MAX', {
    description: 'Judged turns held at once; the rest waits in the log.',
    default: 2_000,
    min: 16,
    max: 100_000,
  }),
};

export const trainerSettings = {
  natsUrl: baseSettings.natsUrl,
  natsUser: baseSettings.natsUser,
  natsPassword: baseSettings.natsPassword,
  healthAddress: baseSettings.healthAddress,
  logLevel: baseSettings.logLevel,
  ackWaitMs: baseSettings.ackWaitMs,
  instance: baseSettings.instance,
  policies: setting.list('BACKTALK_POLICIES', {
    description: 'Policies that are trained, by name.',
    default: 'backtalk',
  }),
  ...installationSettings,
  trainingWorker: setting.address('BACKTALK_TRAINING_WORKER', {
    description: 'gRPC address of the training worker.',
    default: '127.0.0.1:30026',
  }),
  stepDeadlineMs: setting.durationMs('BACKTALK_STEP_DEADLINE', {
    description: 'How long one step may take.',
    default: '1h',
    min: 1_000,
  }),
  retryMaxMs: setting.durationMs('BACKTALK_STEP_RETRY_MAX', {
    description: 'Longest pause before a step that could not be taken is tried again.',
    default: '15s',
    min: 10,
    max: 10 * minuteMs,
  }),
  sweepEveryMs: setting.durationMs('BACKTALK_SWEEP_EVERY', {
    description: 'How often files of old versions are swept.',
    default: '1h',
    min: 1_000,
  }),
  sweepGraceMs: setting.durationMs('BACKTALK_SWEEP_GRACE', {
    description: 'How old a version must be before its files may go.',
    default: '24h',
    min: 0,
  }),
  ...training,
  ...batches,
};

export type TrainerConfig = ConfigOf<typeof trainerSettings>;
