// What is known about a turn from its first moment, and which facts does it become?
//
// In: a request that has been placed (caller, session, version), then the answer. Out: `turn.opened` and
// `turn.completed`, and what the answer index is to remember. Pure.
import type { Capture } from '@backtalk/dialects';
import { baseVersion } from '@backtalk/kit';
import type {
  Consent,
  Conversation,
  SamplingParameters,
  ShownLessons,
  TurnCompleted,
  TurnOpened,
} from '@backtalk/proto/facts';
import { answerKey } from './answer-key.js';
import type { Caller } from './caller.js';
import { earlierKeys, type RememberedConversation, type RememberedTurn } from './continuation.js';
import type { DeclaredSession } from './session-name.js';
import { reasonsAgainst, type Ending } from './trainability.js';

export interface Turn {
  readonly id: string;
  readonly caller: Caller;
  readonly policy: string;
  readonly version: string;
  readonly pinned: boolean;
  readonly session: string;
  readonly declared: DeclaredSession;
  /** Of the attempts that its session is one of; empty: it is none. */
  readonly group: string;
  readonly parent: RememberedTurn | undefined;
  readonly consent: Consent;
  readonly sampling: SamplingParameters;
  readonly answerKeys: readonly string[];
  readonly questionKeys: readonly string[];
  readonly hasMedia: boolean;
  readonly stream: boolean;
  /** What the engine is shown besides the request; undefined: nothing. */
  readonly shown: ShownLessons | undefined;
}

/** The engine that answered; its lease says how it calls the base model. */
export interface AnsweringEngine {
  readonly url: string;
  readonly baseModel: string;
}

export interface TurnAnswer {
  readonly capture: Capture;
  readonly ending: Ending;
  /** Undefined where no engine began to answer. */
  readonly engine: AnsweringEngine | undefined;
  readonly logprobsUntrue?: boolean;
  /** There was no room to keep its ids and logprobs. */
  readonly lackedRoom?: boolean;
}

export function turnOpened(turn: Turn, conversation: Conversation): TurnOpened {
  return {
    turn: turn.id,
    tenant: turn.caller.tenant,
    user: turn.caller.user,
    policy: turn.policy,
    conversation,
    sampling: turn.sampling,
    consent: turn.consent,
    // One that is nowhere would be waited for in vain.
    provisionalParent: turn.parent !== undefined && turn.parent.conversation.messages > 0 ? turn.parent.turn : '',
    provisionalSession: turn.session,
    declaredSession: turn.declared.session,
    declaredTurnType: turn.declared.turnType,
    declaredSessionDone: turn.declared.done,
    answerKeys: [...turn.answerKeys],
    questionKeys: [...turn.questionKeys],
    stream: turn.stream,
    group: turn.group,
  };
}

export function turnCompleted(
  turn: Turn,
  { capture, ending, engine, logprobsUntrue = false, lackedRoom = false }: TurnAnswer,
): TurnCompleted {
  const weightsVersion = versionSaid(capture.modelAtStart, turn.policy, engine);
  const weightsVersionAtEnd = versionSaid(capture.modelAtEnd, turn.policy, engine);
  const reasons = reasonsAgainst(capture, {
    ending,
    consents: turn.consent.train,
    plainSampler: turn.sampling.plain,
    pinned: turn.pinned,
    hasMedia: turn.hasMedia,
    versionAsked: turn.version,
    versionAtStart: weightsVersion,
    versionAtEnd: weightsVersionAtEnd,
    logprobsUntrue,
    lackedRoom,
  });
  return {
    turn: turn.id,
    tenant: turn.caller.tenant,
    user: turn.caller.user,
    policy: turn.policy,
    weightsVersion,
    weightsVersionAtEnd,
    engine: engine?.url ?? '',
    promptIds: [...(capture.promptIds ?? [])],
    answerIds: [...capture.answerIds],
    logprobs: [...capture.logprobs],
    text: capture.text,
    reasoning: capture.reasoning,
    toolCalls: capture.toolCalls.length === 0 ? new Uint8Array(0) : Buffer.from(JSON.stringify(capture.toolCalls)),
    finishReason: { complete: capture.finishReason, aborted: 'abort', engine_failed: 'error' }[ending],
    usage: {
      promptTokens: capture.usage?.promptTokens ?? capture.promptIds?.length ?? 0,
      completionTokens: capture.usage?.completionTokens ?? capture.answerIds.length,
    },
    sampling: turn.sampling,
    trainable: reasons.length === 0,
    untrainableReasons: reasons,
    answerKey: answerKey(turn.caller.answerSecret, capture),
    provisionalSession: turn.session,
    // No longer written: nothing reads it.
    syntheticFrames: false,
    shown: turn.shown,
  };
}

/** A fact's ids, names and place in the log. */
export const openedBytesLeast = 1_000;

/** About as many bytes as the log takes for an answer: ids are written in three bytes and less, logprobs in four. */
export function completedBytes({ promptIds, answerIds, logprobs, text, reasoning, toolCalls }: TurnCompleted): number {
  const said = Buffer.byteLength(text) + Buffer.byteLength(reasoning) + toolCalls.length;
  return openedBytesLeast + 3 * (promptIds.length + answerIds.length) + 4 * logprobs.length + said;
}

/** Of text that an engine did not count. */
const bytesOfToken = 4;

/**
 * As many tokens as count for the key's minute: the engine's, and where it said none, as of an answer that was cut, what its text
 * comes to. A prompt on which engines failed counts only where they said how long it is.
 */
export function tokensUsed(
  { usage, text, reasoning, toolCalls, finishReason }: TurnCompleted,
  promptBytes: number,
): number {
  const said = Buffer.byteLength(text) + Buffer.byteLength(reasoning) + toolCalls.length;
  const asked = finishReason === 'error' ? 0 : promptBytes;
  const promptTokens = usage?.promptTokens || Math.ceil(asked / bytesOfToken);
  return promptTokens + (usage?.completionTokens || Math.ceil(said / bytesOfToken));
}

export function remembered(turn: Turn, conversation: RememberedConversation): RememberedTurn {
  return {
    turn: turn.id,
    session: turn.session,
    policy: turn.policy,
    train: turn.consent.train,
    earlier: earlierKeys(turn.answerKeys),
    question: turn.questionKeys.at(-1) ?? '',
    conversation,
  };
}

/** The engine's word for its weights as a version: the base model is version 0. What it says beyond that is kept as it is. */
function versionSaid(model: string, policy: string, engine: AnsweringEngine | undefined): string {
  return engine !== undefined && model === engine.baseModel ? baseVersion(policy) : model;
}
