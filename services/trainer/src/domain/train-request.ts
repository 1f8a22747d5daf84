// What the training worker is asked to do for a batch, the same bytes each time. What the log has lost is left out and named.
import { isJsonObject, lastHumanMessage, personWords, textsIn, wordsIn, type JsonObject } from '@backtalk/kit';
import { Provenance, type BatchClosed, type BatchSample, type TurnContinued } from '@backtalk/proto/facts';
import { TrainRequest, TrainSample } from '@backtalk/proto/training';
import { SampleReport, type WeightsManifest } from '@backtalk/proto/weights';

import { isCut, isGreedy } from './candidate.js';
import type { TurnFacts } from './settle-reason.js';
import type { StepPlan } from './step-plan.js';

export interface SampleSource {
  readonly facts: TurnFacts;
  readonly messages: readonly unknown[];
  readonly tools: readonly unknown[];
  readonly templateArguments: JsonObject;
  /** -1 = the last user message. */
  readonly humanMessage: number;
}

/** What the person had asked before the answer, in their own words; empty where no person wrote any. */
export function questionIn({ messages, humanMessage }: Pick<SampleSource, 'messages' | 'humanMessage'>): string {
  const message = messages[humanMessage];
  return isJsonObject(message) ? wordsIn(message['content']) : '';
}

export interface Built {
  readonly sample: TrainSample;
  readonly untaught: Untaught;
}

export interface Step {
  readonly request: TrainRequest;
  readonly leftOut: readonly SampleReport[];
  /** By turn; those that have their teacher, or need none, are not in it. */
  readonly untaught: ReadonlyMap<string, Untaught>;
}

/**
 * Why a sample has no teacher although there are hints for it: engines do not render its prompt as it was captured, or every hint
 * quotes a token of the template. Empty where it has one, or needs none.
 */
export type Untaught = '' | 'template_mismatch' | 'prompt_given_up' | 'control_token';

/** Why a sample of a closed batch is not asked for: it cannot be read any more, or it is larger than a sample may be. */
export type LeftOut = 'missing' | 'too_large';

/** Ids of the plan's probe prompts, and of the same prompts with the lessons in force in them: none where there are no lessons. */
export interface Probes {
  readonly plain: readonly number[][];
  readonly told: readonly number[][];
}

/** @param built by turn */
export function stepOf(
  batch: BatchClosed,
  plan: StepPlan,
  parent: WeightsManifest | undefined,
  built: ReadonlyMap<string, Built | LeftOut>,
  probes: Probes,
): Step {
  const samples: TrainSample[] = [];
  const leftOut: SampleReport[] = [];
  const untaught = new Map<string, Untaught>();
  for (const { turn } of batch.samples) {
    const made = built.get(turn) ?? 'missing';
    if (typeof made === 'string') leftOut.push(SampleReport.fromPartial({ turn, dropped: made }));
    else samples.push(made.sample);
    if (typeof made !== 'string' && made.untaught !== '') untaught.set(turn, made.untaught);
  }
  const request = TrainRequest.fromPartial({
    call: callOf(batch),
    policy: batch.policy,
    version: batch.version,
    seed: batch.seed,
    config: { ...plan.training, klBeta: batch.klBeta },
    samples,
    parentAdapter: parent?.adapter ?? [],
    parentTrainingState: parent?.trainingState ?? [],
    meanAnswerLength: batch.meanAnswerLength,
    probePromptIds: probes.plain.map((ids) => ({ ids })),
    toldProbePromptIds: probes.told.map((ids) => ({ ids })),
  });
  return { request, leftOut, untaught };
}

/** The worker knows a repeat of a step by it. */
export function callOf({ policy, number }: BatchClosed): string {
  return `${policy}-${number}`;
}

/** Prompts of one sample as engines render them. */
export interface Prompts {
  /** The request as its person sent it. */
  readonly plain: readonly number[];
  /** With the hints in it; empty where the sample has no teacher. */
  readonly teacher: readonly number[];
  /** With other hints in it; empty where it cannot be had. */
  readonly others: readonly (readonly number[])[];
}

export function trainSample(
  sample: BatchSample,
  { facts: { completed } }: Pick<SampleSource, 'facts'>,
  { plain, teacher, others }: Prompts,
): TrainSample | LeftOut {
  if (completed === undefined) return 'missing';
  const shown = completed.shown !== undefined;
  // An answer that was not good enough with the lessons shown is none that the teacher should have given.
  const isTold = !shown || sample.verdict >= 0;
  return TrainSample.fromPartial({
    turn: sample.turn,
    promptIds: [...plain],
    answerIds: isTold ? completed.answerIds : [],
    logprobs: isTold ? completed.logprobs : [],
    temperature: isGreedy(completed) ? 1 : (completed.sampling?.temperature ?? 1),
    advantage: sample.advantage,
    cut: isCut(completed),
    teacherPromptIds: [...teacher],
    otherTeacherPrompts: others.map((ids) => ({ ids: [...ids] })),
    shown,
  });
}

/** As answers are sampled where a request names no other. */
const rehearsalTemperature = 0.8;

export function rehearsedSample(
  { turn }: BatchSample,
  { plain, teacher }: Pick<Prompts, 'plain' | 'teacher'>,
): TrainSample {
  return TrainSample.fromPartial({
    turn,
    promptIds: [...plain],
    temperature: rehearsalTemperature,
    teacherPromptIds: [...teacher],
    shown: true,
  });
}

/**
 * Which message of a request a person wrote last: agents add context of their own behind it.
 * @param before the next state of the turn before, which says where each new text came from; a message may have several
 * @returns an index in the messages; -1 where no person wrote any, then the last user message counts
 */
export function humanMessage(messages: readonly unknown[], before: TurnContinued | undefined): number {
  const spoken = before?.nextState.findLast(({ provenance }) => provenance === Provenance.PROVENANCE_USER)?.text;
  const index = messages.findLastIndex((message) => {
    if (!isJsonObject(message) || message['role'] !== 'user') return false;
    return textsIn(message['content']).some((text) => personWords(text) === spoken);
  });
  // A very long text is cut in a next state.
  return index >= 0 ? index : lastHumanMessage(messages);
}
