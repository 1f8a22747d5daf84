// What the training worker is asked to do for a batch, the same bytes each time. What the log has lost is left out and named.
import { isJsonObject, lastHumanMessage } from '@backtalk/kit';
import { Provenance, type BatchClosed, type BatchSample, type TurnContinued } from '@backtalk/proto/facts';
import type { TrainRequest, TrainSample } from '@backtalk/proto/training';
import type { SampleReport, WeightsManifest } from '@backtalk/proto/weights';

import { isCut, isGreedy } from './candidate.js';
import { hintsOf } from './lessons-in-force.js';
import type { TurnFacts } from './settle-reason.js';
import type { StepPlan } from './step-plan.js';

export interface SampleSource {
  readonly facts: TurnFacts;
  readonly messages: readonly unknown[];
  readonly tools: readonly unknown[];
  /** -1 = the last user message. */
  readonly humanMessage: number;
}

export interface Step {
  readonly request: TrainRequest;
  readonly leftOut: readonly SampleReport[];
}

/** Why a sample of a closed batch is not asked for: it cannot be read any more, or it is larger than a sample may be. */
export type LeftOut = 'missing' | 'too_large';

/** @param built by turn */
export function stepOf(
  batch: BatchClosed,
  plan: StepPlan,
  parent: WeightsManifest | undefined,
  built: ReadonlyMap<string, TrainSample | LeftOut>,
): Step {
  const samples: TrainSample[] = [];
  const leftOut: SampleReport[] = [];
  for (const { turn } of batch.samples) {
    const sample = built.get(turn) ?? 'missing';
    if (typeof sample === 'string') leftOut.push({ turn, dropped: sample, divergence: 0, staleness: 0 });
    else samples.push(sample);
  }
  const request: TrainRequest = {
    call: callOf(batch),
    policy: batch.policy,
    version: batch.version,
    seed: batch.seed,
    config: { ...plan.training, klBeta: batch.klBeta },
    samples,
    parentAdapter: parent?.adapter ?? [],
    parentTrainingState: parent?.trainingState ?? [],
    meanAnswerLength: batch.meanAnswerLength,
    probePrompts: [...plan.probePrompts],
  };
  return { request, leftOut };
}

/** The worker knows a repeat of a step by it. */
export function callOf({ policy, number }: BatchClosed): string {
  return `${policy}-${number}`;
}

export function trainSample(sample: BatchSample, batch: BatchClosed, source: SampleSource): TrainSample | LeftOut {
  const { completed } = source.facts;
  if (completed === undefined) return 'missing';
  return {
    turn: sample.turn,
    promptIds: completed.promptIds,
    answerIds: completed.answerIds,
    logprobs: completed.logprobs,
    temperature: isGreedy(completed) ? 1 : (completed.sampling?.temperature ?? 1),
    advantage: sample.advantage,
    cut: isCut(completed),
    hints: hintsOf(batch, sample),
    messages: jsonBytes(source.messages),
    tools: source.tools.length === 0 ? new Uint8Array() : jsonBytes(source.tools),
    humanMessage: source.humanMessage,
  };
}

function jsonBytes(values: readonly unknown[]): Uint8Array {
  return new TextEncoder().encode(JSON.stringify(values));
}

/**
 * Which message of a request a person wrote last: agents add context of their own behind it.
 * @param before the next state of the turn before, which says where each new message came from
 * @returns an index in the messages; -1 where no person wrote any, then the last user message counts
 */
export function humanMessage(messages: readonly unknown[], before: TurnContinued | undefined): number {
  const nextState = before?.nextState ?? [];
  const spoken = nextState.findLastIndex(({ provenance }) => provenance === Provenance.PROVENANCE_USER);
  const index = messages.length - nextState.length + spoken;
  const message = messages[index];
  const isUsers = isJsonObject(message) && message['role'] === 'user';
  return spoken >= 0 && isUsers ? index : lastHumanMessage(messages);
}
