// What is known about a turn from its first moment, and which facts does it become?
//
// In: a request that has been placed (caller, session, version), then the answer. Out: `turn.opened` and
// `turn.completed`, and what the answer index is to remember. Pure.
import type { Capture } from '@backtalk/dialects';
import type { Consent, Conversation, SamplingParameters, TurnCompleted, TurnOpened } from '@backtalk/proto/facts';
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
  readonly parent: RememberedTurn | undefined;
  readonly consent: Consent;
  readonly sampling: SamplingParameters;
  readonly answerKeys: readonly string[];
  readonly stream: boolean;
}

export interface TurnAnswer {
  readonly capture: Capture;
  readonly ending: Ending;
  readonly engine: string;
  readonly logprobsUntrue?: boolean;
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
    provisionalParent: turn.parent?.turn ?? '',
    provisionalSession: turn.session,
    declaredSession: turn.declared.session,
    declaredTurnType: turn.declared.turnType,
    declaredSessionDone: turn.declared.done,
    answerKeys: [...turn.answerKeys],
    stream: turn.stream,
  };
}

export function turnCompleted(
  turn: Turn,
  { capture, ending, engine, logprobsUntrue = false }: TurnAnswer,
): TurnCompleted {
  const reasons = reasonsAgainst(capture, {
    ending,
    consents: turn.consent.train,
    plainSampler: turn.sampling.plain,
    pinned: turn.pinned,
    versionAtStart: turn.version,
    versionAtEnd: turn.version,
    logprobsUntrue,
  });
  return {
    turn: turn.id,
    tenant: turn.caller.tenant,
    user: turn.caller.user,
    policy: turn.policy,
    weightsVersion: turn.version,
    weightsVersionAtEnd: turn.version,
    engine,
    promptIds: [...(capture.promptIds ?? [])],
    answerIds: [...capture.answerIds],
    logprobs: [...capture.logprobs],
    text: capture.text,
    reasoning: capture.reasoning,
    toolCalls: capture.toolCalls.length === 0 ? new Uint8Array(0) : Buffer.from(JSON.stringify(capture.toolCalls)),
    finishReason: finishReason(capture, ending),
    usage: usageOf(capture),
    sampling: turn.sampling,
    trainable: reasons.length === 0,
    untrainableReasons: reasons,
    answerKey: answerKey(turn.caller.answerSecret, capture),
    provisionalSession: turn.session,
    syntheticFrames: capture.synthetic === true,
  };
}

export function remembered(turn: Turn, conversation: RememberedConversation): RememberedTurn {
  return {
    turn: turn.id,
    session: turn.session,
    train: turn.consent.train,
    earlier: earlierKeys(turn.answerKeys),
    conversation,
  };
}

function finishReason(capture: Capture, ending: Ending): string {
  if (ending === 'aborted') return 'abort';
  if (ending === 'engine_failed') return 'error';
  return capture.finishReason;
}

function usageOf(capture: Capture): TurnCompleted['usage'] {
  return {
    promptTokens: capture.usage?.promptTokens ?? capture.promptIds?.length ?? 0,
    completionTokens: capture.usage?.completionTokens ?? capture.answerIds.length,
  };
}
