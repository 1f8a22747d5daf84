// Asks an engine for a turn's answer, and others if the first failed before it said anything.
//
// In: a turn and a way to ask. Out: the first sign of an answer, with the engine that gave it. Each replica that may
// answer is asked once, and a lone one, or one that failed while no other was left, once more; the routes are read
// again where nobody holds the version or an engine does not know it. It never asks one again that said it is full,
// never retries what the client itself got wrong, nor an answer that has begun.
import type { EngineChatRequest, EngineClient } from '@backtalk/dialects';
import { asBacktalkError, inSpan, type BacktalkError } from '@backtalk/kit';
import { gatewayErrors } from '../errors.js';
import { engineModelOf, engineRequest } from '../domain/engine-request.js';
import { areFull, chooseReplica, type Replica, type ReplicaQuestion } from '../domain/replica-choice.js';
import type { AnsweringEngine, Turn } from '../domain/turn.js';
import type { Exchange } from './exchange.js';
import type { Parts } from './parts.js';
import { versionFor, type PlacedTurn } from './place-turn.js';

export interface AskedAnswer<T> {
  /** With the version that really answers. */
  readonly turn: Turn;
  readonly engine: AnsweringEngine;
  readonly result: T;
  /** The answer is over. */
  readonly leave: () => void;
}

export type Ask<T> = (client: EngineClient, request: EngineChatRequest) => Promise<T>;

/** By the URL of the replica that failed. */
type Failed = Map<string, BacktalkError>;

const retryAfterSeconds = 2;
/** A request asks no more often than this, however many replicas there are. */
const triesMax = 4;
const fullCode = 'engine_overloaded';

/** Traced until the answer begins, or until it is there where it comes in one piece. */
export async function askEngine<T>(parts: Parts, exchange: Exchange, ask: Ask<T>): Promise<AskedAnswer<T>> {
  return inSpan('ask engine', { kind: 'client', parent: exchange.trace }, () => askUntilAnswered(parts, exchange, ask));
}

async function askUntilAnswered<T>(parts: Parts, { placed, request }: Exchange, ask: Ask<T>): Promise<AskedAnswer<T>> {
  const failed: Failed = new Map();
  let { turn } = placed;
  for (let triesLeft = triesFor(parts, turn); ; triesLeft -= 1) {
    const replica = pick(parts, turn, failed);
    if (replica === undefined) {
      if (triesLeft <= 1 || areFull(questionOf(parts, turn, failed))) throw noReplica(parts, turn, failed);
      turn = await readRoutesAgain(parts, placed, turn);
      continue;
    }
    const leave = parts.places.answer(replica.url, turn.version);
    try {
      const body = engineRequest(request, placed.sampling, engineModelOf(turn.version, replica));
      return { turn, engine: replica, result: await ask(parts.fleet.client(replica), body), leave };
    } catch (thrown) {
      leave();
      const error = asBacktalkError(thrown);
      if (!mayRetry(error)) throw told(error, turn);
      failed.set(replica.url, error);
      if (triesLeft <= 1) throw told(fullAmong(failed) ?? error, turn);
      parts.events.engineRetried(error.code);
      if (error.code === 'model_not_found') turn = await readRoutesAgain(parts, placed, turn);
    }
  }
}

function triesFor(parts: Parts, { version }: Turn): number {
  return Math.min(triesMax, Math.max(1, parts.fleet.candidates(version).length) + 1);
}

/** Nobody holds the version, or somebody who should does not: routes may have moved on, or loaders said more than was heard. */
async function readRoutesAgain(parts: Parts, placed: PlacedTurn, turn: Turn): Promise<Turn> {
  await Promise.all([parts.routes.reread(turn.policy), parts.fleet.lookAgain()]);
  return { ...turn, version: versionFor(parts, placed.model, turn.caller, turn.session) };
}

function pick(parts: Parts, turn: Turn, failed: Failed): Replica | undefined {
  const question = questionOf(parts, turn, failed);
  // With no other replica, the same one may have been restarted, or its connection was merely stale.
  return chooseReplica({ ...question, excluded: new Set(failed.keys()) }) ?? chooseReplica(question);
}

function questionOf({ fleet, places, config }: Parts, { version, session }: Turn, failed: Failed): ReplicaQuestion {
  const placesMax = config.engineRequestsMax;
  // A replica that said that it is full is full, whatever is counted here: others ask it, too.
  const inFlight = (url: string) => (failed.get(url)?.code === fullCode ? placesMax : places.onEngine(url));
  return { engines: fleet.candidates(version), version, session, inFlight, placesMax, excluded: nobody };
}

const nobody: ReadonlySet<string> = new Set();

function fullAmong(failed: Failed): BacktalkError | undefined {
  return [...failed.values()].find(({ code }) => code === fullCode);
}

const retried = new Set([
  'model_not_found',
  'engine_unreachable',
  'engine_failed',
  'engine_stream_broken',
  fullCode,
  'engine_reply_invalid',
]);

function mayRetry({ code }: BacktalkError): boolean {
  return retried.has(code);
}

function noReplica(parts: Parts, turn: Turn, failed: Failed): BacktalkError {
  const full = fullAmong(failed);
  if (full !== undefined) return told(full, turn);
  if (areFull(questionOf(parts, turn, failed))) return gatewayErrors.overloaded({ retryAfterSeconds });
  if (failed.size > 0) return gatewayErrors.engineUnavailable({ retryAfterSeconds });
  return notHeld(turn);
}

function notHeld(turn: Turn): BacktalkError {
  if (turn.pinned) return gatewayErrors.unknownModel({ param: 'model' });
  return gatewayErrors.noEngine({ version: turn.version, retryAfterSeconds });
}

/** What an engine's failure means to a client. Its refusals of bad requests are told as they are. */
function told(error: BacktalkError, turn: Turn): BacktalkError {
  const { limit, param, retryAfterSeconds: wait } = error.detail;
  switch (error.code) {
    case 'context_length_exceeded':
      return gatewayErrors.contextTooLong(
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
      return notHeld(turn);
    case 'engine_overloaded':
      return gatewayErrors.overloaded(
        { retryAfterSeconds: typeof wait === 'number' ? wait : retryAfterSeconds },
        error,
      );
    case 'engine_timeout':
      return gatewayErrors.engineTimeout({ retryAfterSeconds }, error);
    default:
      return gatewayErrors.engineUnavailable({ retryAfterSeconds }, error);
  }
}
