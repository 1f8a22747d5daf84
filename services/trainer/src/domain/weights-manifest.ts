// What a new version is made of, and the report that the ledger keeps of it.
import type { BatchClosed, WeightsTrained } from '@backtalk/proto/facts';
import type { TrainResult } from '@backtalk/proto/training';
import { SampleReport, type TrainingReport, type WeightsManifest } from '@backtalk/proto/weights';

import type { StepPlan } from './step-plan.js';
import type { Step } from './train-request.js';

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
    baseDigest: result.baseDigest,
    teacherDigest: result.teacherDigest,
  };
}

/** The worker's report, with what became of samples before it got them. */
export function reportOf(
  report: TrainingReport | undefined,
  { leftOut, untaught }: Pick<Step, 'leftOut' | 'untaught'>,
): TrainingReport {
  const trained = (report?.samples ?? []).map((sample) => {
    // A stale sample lost its reward, and one that was answered with lessons shown all: that it had no teacher is what an operator has to know.
    const lostAll = !['', 'stale', 'untaught'].includes(sample.dropped);
    const dropped = lostAll ? sample.dropped : (untaught.get(sample.turn) ?? sample.dropped);
    return SampleReport.fromPartial({ ...sample, dropped });
  });
  return { measurements: report?.measurements ?? {}, samples: [...trained, ...leftOut] };
}

export function trainedFact(batch: BatchClosed, manifestDigest: string, report: TrainingReport): WeightsTrained {
  const { policy, version, number, parent } = batch;
  return { policy, version, batch: number, parent, manifestDigest, report };
}
