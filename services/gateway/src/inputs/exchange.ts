// One request that is being answered, and how its end is recorded.
import type { ServerResponse } from 'node:http';
import type { CancelSignal, Capture, StreamOptions } from '@backtalk/dialects';
import type { BacktalkError, Trace } from '@backtalk/kit';
import type { ChatRequest } from '../domain/chat-request.js';
import type { ClientView } from '../domain/frame.js';
import type { Ending } from '../domain/trainability.js';
import type { AnsweringEngine, Turn } from '../domain/turn.js';
import type { Parts } from './parts.js';
import type { PlacedTurn } from './place-turn.js';
import type { TurnRecord } from './turn-record.js';

export interface Exchange {
  readonly placed: PlacedTurn;
  readonly request: ChatRequest;
  readonly response: ServerResponse;
  /** What the client is told of its turn, in whatever way the answer goes. */
  readonly headers: Readonly<Record<string, string>>;
  /** Aborted when the client has gone. */
  readonly signal: CancelSignal;
  readonly trace: Trace;
  readonly startedMs: number;
}

export function viewOf({ request }: Exchange, turn: Turn): ClientView {
  const { model, wantsLogprobs, wantsTokenIds, wantsUsage } = request;
  return { turn: turn.id, model, wantsLogprobs, wantsTokenIds, wantsUsage };
}

export function callOptions({ config }: Parts, { signal }: Exchange): StreamOptions {
  return {
    signal,
    deadlineMs: config.answerWaitMs,
    firstByteMs: config.firstByteWaitMs,
    idleMs: config.silenceWaitMs,
  };
}

const clientsDoing = new Set(['client_gone', 'reader_too_slow', 'request_aborted']);

function endingOf({ signal }: Exchange, { code }: BacktalkError): Ending {
  return signal.aborted || clientsDoing.has(code) ? 'aborted' : 'engine_failed';
}

const nothing: Capture = {
  promptIds: undefined,
  answerIds: [],
  logprobs: [],
  text: '',
  reasoning: '',
  toolCalls: [],
  finishReason: '',
  usage: undefined,
  choices: 1,
  modelAtStart: '',
  modelAtEnd: '',
};

/** Records an answer that did not come to its end. Its client is told, or gone: nobody waits for this. */
export function recordUnfinished(
  parts: Parts,
  exchange: Exchange,
  record: TurnRecord,
  unfinished: {
    readonly turn: Turn;
    readonly engine: AnsweringEngine | undefined;
    readonly capture?: Capture;
    readonly error: BacktalkError;
  },
): void {
  const { turn, engine, capture = nothing, error } = unfinished;
  const ending = endingOf(exchange, error);
  if (ending === 'engine_failed' && (error.status ?? 500) >= 500) parts.events.engineFailed(turn.id, error);
  parts.afterwards(record.complete(turn, { capture, ending, engine }));
}
