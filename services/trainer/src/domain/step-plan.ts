// How is a step taken, whatever its samples are?
// In: the training settings. Out: one canonical document and its digest; and back. It is stored under its digest before a batch names
// it, so that a repeated step follows the same plan even when the configuration has changed in between.
import { TrainingConfig } from '@backtalk/proto/training';
import { createHash } from 'node:crypto';

import { probePrompts } from './probe-prompts.js';

export interface StepPlan {
  readonly training: TrainingConfig;
  readonly probePrompts: readonly Uint8Array[];
}

export interface StoredPlan {
  readonly bytes: Uint8Array;
  readonly digest: string;
}

/** The KL weight changes from batch to batch and stands in the batch itself. */
export function planFor(training: TrainingConfig): StepPlan {
  return { training: { ...training, klBeta: 0 }, probePrompts: probePrompts() };
}

export function encodePlan(plan: StepPlan): StoredPlan {
  const document = {
    training: TrainingConfig.toJSON(plan.training),
    probePrompts: plan.probePrompts.map((prompt) => new TextDecoder().decode(prompt)),
  };
  const bytes = new TextEncoder().encode(JSON.stringify(document));
  return { bytes, digest: createHash('sha256').update(bytes).digest('hex') };
}

export function decodePlan(bytes: Uint8Array): StepPlan | undefined {
  const document: unknown = JSON.parse(new TextDecoder().decode(bytes));
  if (typeof document !== 'object' || document === null) return undefined;
  if (!('training' in document) || !('probePrompts' in document) || !Array.isArray(document.probePrompts))
    return undefined;
  const prompts = document.probePrompts.filter((prompt): prompt is string => typeof prompt === 'string');
  return {
    training: TrainingConfig.fromJSON(document.training),
    probePrompts: prompts.map((prompt) => new TextEncoder().encode(prompt)),
  };
}
