// Which settings go with every sample of a step to the training worker?
// In: the trainer's configuration. Out: the wire form, every field set. Never decides a value.
import type { TrainingConfig } from '@backtalk/proto/training';

export interface TrainingSettings {
  readonly method: string;
  readonly opdForm: string;
  readonly divergence: string;
  readonly jsdBeta: number;
  readonly weightRl: number;
  readonly weightOpd: number;
  readonly loraRank: number;
  readonly loraAlpha: number;
  readonly learningRate: number;
  readonly adamBeta1: number;
  readonly adamBeta2: number;
  readonly weightDecay: number;
  readonly gradientClip: number;
  readonly clipLow: number;
  readonly clipHigh: number;
  readonly dualClip: number;
  readonly opdAdvantageClip: number;
  readonly stepBound: number;
  readonly klForm: string;
  readonly answerTokensMax: number;
  readonly sampleTokensMax: number;
  readonly microBatchTokens: number;
  readonly optimizerSteps: number;
  readonly hintPlace: string;
  readonly staleLogRatio: number;
}

export function trainingConfig(settings: TrainingSettings): TrainingConfig {
  const { method, opdForm, divergence, jsdBeta, weightRl, weightOpd, loraRank, loraAlpha, learningRate } = settings;
  const { adamBeta1, adamBeta2, weightDecay, gradientClip, clipLow, clipHigh, dualClip, opdAdvantageClip } = settings;
  const { stepBound, klForm, microBatchTokens, optimizerSteps, hintPlace } = settings;
  return {
    method,
    opdForm,
    divergence,
    jsdBeta,
    weightRl,
    weightOpd,
    loraRank,
    loraAlpha,
    learningRate,
    adamBeta1,
    adamBeta2,
    weightDecay,
    gradientClip,
    clipLow,
    clipHigh,
    dualClip,
    opdAdvantageClip,
    stepBound,
    klBeta: 0,
    klForm,
    maxAnswerTokens: settings.answerTokensMax,
    maxTokens: settings.sampleTokensMax,
    microBatchTokens,
    optimizerSteps,
    hintPlace,
    stalenessMax: settings.staleLogRatio,
  };
}
