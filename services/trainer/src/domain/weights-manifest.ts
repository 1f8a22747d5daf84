// What a new version is made of, and the report that the ledger keeps of it.
import type { BatchClosed, WeightsTrained } from '@backtalk/proto/facts';
import type { TrainResult } from '@backtalk/proto/training';
import type { SampleReport, TrainingReport, WeightsManifest } from '@backtalk/proto/weights';

import type { StepPlan } from './step-plan.js';

export function manifestOf(batch: BatchClosed, plan: StepPlan, result: TrainResult): WeightsManifest {
  return {
    policy: batch.policy,
    version: batch.version,
    parent: batch.parent,
    batch: batch.number,
    baseModel: result.baseModel,
    loraRank: plan.training.loraRank,
    loraAlpha: plan.training.loraAlpha,
    adapter: result.adapter,
    trainingState: result.trainingState,
    probes: result.probes,
    dtype: result.dtype,
    configDigest: batch.configDigest,
    meanAnswerLength: batch.meanAnswerLength,
  };
}

export function trainedFact(
  batch: BatchClosed,
  manifestDigest: string,
  report: TrainingReport | undefined,
  leftOut: readonly SampleReport[],
): WeightsTrained {
  return {
    policy: batch.policy,
    version: batch.version,
    batch: batch.number,
    parent: batch.parent,
    manifestDigest,
    report: { measurements: report?.measurements ?? {}, samples: [...(report?.samples ?? []), ...leftOut] },
  };
}
