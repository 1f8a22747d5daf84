// Asks an engine for a turn's answer, and others if the first failed before it said anything.
//
// In: a turn and a way to ask. Out: the first sign of an answer, with the engine that gave it. Each replica that may
// answer is asked once, and a lone one, or one that failed while no other was left, once more; the routes are read
// again where no engine holds the version or one does not know it. It never asks one again that said it is full,
// never retries what the client itself got wrong, nor an answer that has begun.
import { dialectNamed, isEngineError, type EngineChatRequest, type EngineClient } from '@backtalk/dialects';
import { asBacktalkError, inSpan, type BacktalkError } from '@backtalk/kit';
import { gatewayErrors } from '../errors.js';
import { engineModelOf, engineRequest } from '../domain/engine-request.js';
import { areFull, chooseReplica, type ReplicaRequest } from '../domain/replica-choice.js';
import type { AnsweringEngine, Turn } from '../domain/turn.js';
import type { Exchange } from './answer-turn.js';
import type { Parts } from './parts.js';
import { versionFor } from './open-turn.js';

export interface AskedAnswer<T> {
  /** With the version that was asked for in the end. */
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
/** Another engine, or the same one a little later, may answer where one failed so. */
const retriedCodes = [
  'model_not_found',
  'engine_unreachable',
  'engine_failed',
  'engine_stream_broken',
  'engine_overloaded',
  'engine_reply_invalid',
] as const;

/** Traced until the answer begins, or until it is there where it comes in one piece. */
export async function askEngine<T>(parts: Parts, exchange: Exchange, ask: Ask<T>): Promise<AskedAnswer<T>> {
  return inSpan('ask engine', { kind: 'client', parent: exchange.trace }, async () => {
    const { fleet, routes, slots } = parts.serving;
    const slotsMax = parts.config.engineRequestsMax;
    const failed: Failed = new Map();
    let { turn } = exchange;
    // No engine holds the version, or one that should does not: routes may have moved on, or leases have changed.
    const readRoutesAgain = async (): Promise<void> => {
      await Promise.all([routes.reread(turn.policy), fleet.lookAgain()]);
      turn = { ...turn, version: versionFor(parts, exchange.model, turn.caller, turn.session) };
    };
    const tries = Math.min(triesMax, Math.max(1, fleet.candidates(turn.version).length) + 1);
    for (let triesLeft = tries; ; triesLeft -= 1) {
      const { version, session } = turn;
      const wanted: ReplicaRequest = {
        engines: fleet.candidates(version),
        version,
        session,
        // A replica that said that it is full is full, whatever is counted here: other gateways ask it, too.
        inFlight: (url) => (isEngineError(failed.get(url), 'engine_overloaded') ? slotsMax : slots.onEngine(url)),
        slotsMax,
        excluded: new Set(),
      };
      // With no other replica, the same one may have been restarted, or its connection was merely stale.
      const replica = chooseReplica({ ...wanted, excluded: new Set(failed.keys()) }) ?? chooseReplica(wanted);
      if (replica === undefined) {
        const areAllFull = areFull(wanted);
        if (triesLeft <= 1 || areAllFull) {
          const full = fullAmong(failed);
          if (full !== undefined) throw errorForClient(full, turn);
          if (areAllFull) throw gatewayErrors.overloaded({ retryAfterSeconds });
          throw failed.size > 0 ? gatewayErrors.engineUnavailable({ retryAfterSeconds }) : notHeld(turn);
        }
        await readRoutesAgain();
        continue;
      }
      const engineModel = engineModelOf(turn.version, replica);
      const body = engineRequest(exchange.request, exchange.sampling, engineModel, dialectNamed(replica.dialect));
      const leave = slots.answer(replica.url, turn.version);
      try {
        return { turn, engine: replica, result: await ask(fleet.client(replica), body), leave };
      } catch (thrown) {
        leave();
        const error = asBacktalkError(thrown);
        if (!isEngineError(error, ...retriedCodes)) throw errorForClient(error, turn);
        failed.set(replica.url, error);
        if (triesLeft <= 1) throw errorForClient(fullAmong(failed) ?? error, turn);
        parts.events.engineRetried(error.code);
        if (isEngineError(error, 'model_not_found')) await readRoutesAgain();
      }
    }
  });
}

function fullAmong(failed: Failed): BacktalkError | undefined {
  return [...failed.values()].find((error) => isEngineError(error, 'engine_overloaded'));
}

function notHeld({ pinned, version }: Turn): BacktalkError {
  return pinned
    ? gatewayErrors.unknownModel({ param: 'model' })
    : gatewayErrors.noEngine({ version, retryAfterSeconds });
}

/** What an engine's failure means to a client. Its refusals of bad requests go through as they are. */
function errorForClient(error: BacktalkError, turn: Turn): BacktalkError {
  const { limit, param, retryAfterSeconds: wait = retryAfterSeconds } = error.detail;
  if (isEngineError(error, 'invalid_request', 'request_aborted')) return error;
  if (isEngineError(error, 'model_not_found')) return notHeld(turn);
  if (isEngineError(error, 'engine_timeout')) return gatewayErrors.engineTimeout({ retryAfterSeconds }, error);
  if (isEngineError(error, 'engine_overloaded'))
    return gatewayErrors.overloaded({ retryAfterSeconds: Number(wait) }, error);
  if (isEngineError(error, 'context_length_exceeded')) {
    const longest = typeof limit === 'number' ? limit : undefined;
    return gatewayErrors.contextTooLong({ param: String(param), limit: longest }, error);
  }
  return gatewayErrors.engineUnavailable({ retryAfterSeconds }, error);
}
