/**
 * Asks an engine for a turn's answer, and another one if the first failed before it said anything.
 *
 * In: a turn and a way to ask. Out: the first sign of an answer, with the engine that gave it. One retry at most: on
 * another replica, or, where an engine does not know the version, after the routes were read again. It never retries
 * what the client itself got wrong, nor an answer that has begun.
 */
import type { EngineChatRequest, EngineClient } from '@backtalk/dialects';
import { asBacktalkError, type BacktalkError } from '@backtalk/kit';
import { failures, refusals } from '../errors.js';
import type { ChatRequest } from '../domain/chat-request.js';
import { engineModelOf, engineRequest } from '../domain/engine-request.js';
import { chooseReplica, type Replica } from '../domain/replica-choice.js';
import type { Turn } from '../domain/turn.js';
import type { Parts } from './parts.js';
import { versionFor, type PlacedTurn } from './place-turn.js';

export interface AskedAnswer<T> {
  /** With the version that really answers. */
  readonly turn: Turn;
  readonly engine: string;
  readonly result: T;
  /** The answer is over. */
  readonly leave: () => void;
}

export type Ask<T> = (client: EngineClient, request: EngineChatRequest) => Promise<T>;

const retryAfterSeconds = 2;

export async function askEngine<T>(
  parts: Parts,
  placed: PlacedTurn,
  request: ChatRequest,
  ask: Ask<T>,
): Promise<AskedAnswer<T>> {
  const failed = new Set<string>();
  let { turn } = placed;
  for (let triesLeft = 1; ; triesLeft -= 1) {
    const replica = pick(parts, turn, failed);
    if (replica === undefined && triesLeft === 0) throw noReplica(turn, failed);
    if (replica !== undefined) {
      const leave = parts.places.answer(replica.url, turn.version);
      try {
        const body = engineRequest(request, placed.sampling, engineModelOf(turn.version, replica));
        return { turn, engine: replica.url, result: await ask(parts.fleet.client(replica), body), leave };
      } catch (thrown) {
        leave();
        const error = asBacktalkError(thrown);
        if (triesLeft === 0 || !mayRetry(error)) throw told(error, turn);
        // One that does not know the version may have been started again: another replica that holds it is asked first.
        failed.add(replica.url);
        parts.events.engineRetried(error.code);
      }
    }
    // Nobody holds the version, or somebody who should does not: the routes may have moved on.
    await parts.routes.reread(turn.policy);
    turn = { ...turn, version: versionFor(parts, placed.model, turn.caller, turn.session) };
  }
}

function pick(parts: Parts, turn: Turn, excluded: ReadonlySet<string>): Replica | undefined {
  const engines = parts.fleet.candidates(turn.version);
  const inFlight = (url: string): number => parts.places.onEngine(url);
  const question = { engines, version: turn.version, session: turn.session, inFlight };
  // With no other replica, the same one may have been restarted, or its connection was merely stale.
  return chooseReplica({ ...question, excluded }) ?? chooseReplica({ ...question, excluded: new Set() });
}

const retried = new Set([
  'model_not_found',
  'engine_unreachable',
  'engine_failed',
  'engine_stream_broken',
  'engine_overloaded',
  'engine_reply_invalid',
]);

function mayRetry({ code }: BacktalkError): boolean {
  return retried.has(code);
}

function noReplica(turn: Turn, failed: ReadonlySet<string>): BacktalkError {
  if (failed.size > 0) return failures.engineUnavailable({ retryAfterSeconds });
  if (turn.pinned) return refusals.unknownModel({ param: 'model' });
  return failures.noEngine({ version: turn.version, retryAfterSeconds });
}

/** What an engine's failure means to a client. Its refusals of bad requests are told as they are. */
function told(error: BacktalkError, turn: Turn): BacktalkError {
  const { limit, param, retryAfterSeconds: wait } = error.detail;
  switch (error.code) {
    case 'context_length_exceeded':
      return refusals.contextTooLong(
        {
          param: typeof param === 'string' ? param : 'messages',
          limit: typeof limit === 'number' ? limit : undefined,
        },
        error,
      );
    case 'invalid_request':
    case 'request_aborted':
      return error;
    case 'model_not_found':
      return noReplica(turn, new Set());
    case 'engine_overloaded':
      return failures.overloaded({ retryAfterSeconds: typeof wait === 'number' ? wait : retryAfterSeconds }, error);
    case 'engine_timeout':
      return failures.engineTimeout({ retryAfterSeconds }, error);
    default:
      return failures.engineUnavailable({ retryAfterSeconds }, error);
  }
}
