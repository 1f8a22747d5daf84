// Asks an engine for a turn's answer, and others if the first failed before it said anything.
//
// In: a turn and a way to ask. Out: the first sign of an answer, with the engine that gave it. All tries share one
// deadline. An engine that was not there, is full or does not know the version has not begun: others are asked, and a
// lone one once more, after the routes were read again where the version was not known. One that failed on the prompt is
// given one successor and no more; one that is gone after it had the prompt is not asked again, and a prompt on which two
// have gone is given up. It never retries what the client itself got wrong, nor an answer that has begun.
import { isEngineError, type EngineChatRequest, type EngineClient } from '@backtalk/dialects';
import { asBacktalkError, type BacktalkError, inSpan, isBacktalkError, keyedHash, sha256Hex } from '@backtalk/kit';
import { gatewayErrors } from '../errors.js';
import { keylessId } from '../domain/caller.js';
import { engineRequest, mayLoosen } from '../domain/engine-request.js';
import { areFull, chooseReplica, type Replica, type ReplicaRequest } from '../domain/replica-choice.js';
import type { Turn } from '../domain/turn.js';
import type { Exchange } from './answer-turn.js';
import type { Parts } from './parts.js';
import { versionFor } from './open-turn.js';

export interface AskedAnswer<T> {
  /** With the version that was asked for in the end. */
  readonly turn: Turn;
  readonly engine: Replica;
  readonly result: T;
  /** The answer is over. */
  readonly leave: () => void;
}

/** What of an exchange an engine is asked by. */
export type ToAsk = Pick<Exchange, 'turn' | 'model' | 'request' | 'shownMessages' | 'startedMs' | 'trace'>;

export type Ask<T> = (client: EngineClient, request: EngineChatRequest, deadlineMs: number) => Promise<T>;

/** By the URL of the replica that failed. */
type Failed = Map<string, BacktalkError>;

const retryAfterSeconds = 2;
/** A request asks no more often than this, however many replicas there are. */
const triesMax = 4;
/** As many engines see one prompt, if they fail on it. */
const seenMax = 2;
/** The engine has not begun: another one, or the same a little later, may answer. */
const notBegun = ['model_not_found', 'engine_unreachable', 'engine_overloaded'] as const;
/** The engine had the prompt. */
const failedOnPrompt = [
  'engine_connection_lost',
  'engine_failed',
  'engine_stream_broken',
  'engine_reply_invalid',
] as const;
const healthMs = 2_000;

/** Traced until the answer begins, or until it is there where it comes in one piece. */
export async function askEngine<T>(parts: Parts, exchange: ToAsk, ask: Ask<T>): Promise<AskedAnswer<T>> {
  const { clock, serving } = parts;
  const restMs = serving.deadly.restMs(promptOf(exchange.request), clock.now());
  if (restMs > 0) throw gatewayErrors.promptGivenUp({ retryAfterSeconds: Math.ceil(restMs / 1_000) });
  return inSpan('ask engine', { kind: 'client', parent: exchange.trace }, () =>
    new Asking(parts, exchange, ask).answer(),
  );
}

class Asking<T> {
  private turn: Turn;
  private readonly failed: Failed = new Map();
  /** Replicas that were gone after they had the prompt. */
  private readonly gone = new Set<string>();
  private triesLeft: number;
  private seen = 0;
  private isBounded = true;

  constructor(
    private readonly parts: Parts,
    private readonly exchange: ToAsk,
    private readonly ask: Ask<T>,
  ) {
    this.turn = exchange.turn;
    const candidates = parts.serving.fleet.candidates(this.turn.version).length;
    this.triesLeft = Math.min(triesMax, Math.max(1, candidates) + 1);
  }

  async answer(): Promise<AskedAnswer<T>> {
    for (; ; this.triesLeft -= 1) {
      const wanted = this.wanted();
      // With no other replica, the same one may have been restarted, or its connection was merely stale.
      const replica = chooseReplica({ ...wanted, excluded: new Set(this.failed.keys()) }) ?? chooseReplica(wanted);
      if (replica === undefined) await this.routesAgain(areFull(wanted));
      else {
        const asked = await this.askOne(replica);
        if (asked !== undefined) return asked;
      }
    }
  }

  private wanted(): ReplicaRequest {
    const { fleet, slots } = this.parts.serving;
    const slotsMax = this.parts.config.engineRequestsMax;
    const { keyId, limits } = this.turn.caller;
    // With a limit of its own, the operator has said how much of the engines it may take.
    const hasShare = (url: string) =>
      keyId !== keylessId && limits.concurrency === undefined && slots.hasShare(keyId, url, slotsMax);
    const isFull = (url: string) => isEngineError(this.failed.get(url), 'engine_overloaded') || hasShare(url);
    return {
      engines: fleet.candidates(this.turn.version),
      version: this.turn.version,
      session: this.turn.session,
      // A replica that said that it is full is full, whatever is counted here: other gateways ask it, too.
      inFlight: (url) => (isFull(url) ? slotsMax : slots.onEngine(url)),
      slotsMax,
      excluded: this.gone,
    };
  }

  /** Undefined where another one may be asked. */
  private async askOne(replica: Replica): Promise<AskedAnswer<T> | undefined> {
    const { fleet, slots } = this.parts.serving;
    const { turn, exchange } = this;
    const deadlineMs = exchange.startedMs + this.parts.config.answerWaitMs - this.parts.clock.now();
    if (deadlineMs <= 0) throw gatewayErrors.engineTimeout({ retryAfterSeconds });
    const { request, shownMessages = request.messages.json } = exchange;
    const messages = turn.shown === undefined ? request.messages.json : shownMessages;
    const { isBounded } = this;
    const cacheSalt = keyedHash(this.parts.config.hashSecret, `cache\n${turn.caller.tenant}\n${turn.version}`);
    const body = engineRequest(request, { version: turn.version, replica, messages, cacheSalt, isBounded });
    const leave = slots.answer(turn.caller.keyId, replica.url, turn.version);
    try {
      return { turn, engine: replica, result: await this.ask(fleet.client(replica), body, deadlineMs), leave };
    } catch (thrown) {
      leave();
      await this.failedAt(replica, asBacktalkError(thrown));
      return undefined;
    }
  }

  /** Returns where another try may be made. */
  private async failedAt(replica: Replica, error: BacktalkError): Promise<void> {
    if (this.isBounded && mayLoosen(this.exchange.request) && isEngineError(error, 'context_length_exceeded')) {
      this.isBounded = false;
      this.triesLeft += 1;
      return;
    }
    if (this.turn.shown !== undefined && isEngineError(error, 'context_length_exceeded', 'invalid_request')) {
      // What the person sent may be short enough, or right, without them.
      this.turn = { ...this.turn, shown: undefined };
      this.triesLeft += 1;
      return;
    }
    const hadPrompt = isEngineError(error, ...failedOnPrompt);
    if (!hadPrompt && !isEngineError(error, ...notBegun)) throw errorForClient(error, this.turn);
    this.failed.set(replica.url, error);
    if (hadPrompt) {
      this.seen += 1;
      if (await noteDeath(this.parts, this.exchange, replica)) this.gone.add(replica.url);
    }
    if (this.triesLeft <= 1 || this.seen >= seenMax) throw errorForClient(fullAmong(this.failed) ?? error, this.turn);
    this.parts.events.engineRetried(error.code);
    if (isEngineError(error, 'model_not_found')) await this.readRoutes();
  }

  private async routesAgain(areAllFull: boolean): Promise<void> {
    if (this.triesLeft > 1 && !areAllFull && this.gone.size === 0) return this.readRoutes();
    const full = fullAmong(this.failed);
    if (full !== undefined) throw errorForClient(full, this.turn);
    if (areAllFull) throw gatewayErrors.overloaded({ retryAfterSeconds });
    throw this.failed.size > 0 ? gatewayErrors.engineUnavailable({ retryAfterSeconds }) : notHeld(this.turn);
  }

  /** No engine holds the version, or one that should does not: routes may have moved on, or leases have changed. */
  private async readRoutes(): Promise<void> {
    const { routes, fleet } = this.parts.serving;
    const { policy, caller, session } = this.turn;
    await Promise.all([routes.reread(policy), fleet.lookAgain()]);
    this.turn = { ...this.turn, version: versionFor(this.parts, this.exchange.model, caller, session) };
  }
}

/** What a request may end an engine with. Its tools are hashed when it is asked for, which is while one has ended. */
export function promptOf({ messages, tools }: Exchange['request']): { toJSON(): unknown } {
  return { toJSON: () => [messages.digest, sha256Hex(tools)] };
}

/** Whether the engine is gone that failed on this prompt; if so, that is remembered of the prompt. */
export async function noteDeath(
  { clock, events, serving }: Parts,
  { request, turn }: Pick<Exchange, 'request' | 'turn'>,
  replica: Replica,
): Promise<boolean> {
  const health = await serving.fleet.client(replica).health({ deadlineMs: healthMs });
  if (health === 'up' || health === 'refusing') return false;
  events.engineDied(turn.id);
  if (serving.deadly.died(promptOf(request), replica.url, clock.now())) events.promptGivenUp(turn.id);
  return true;
}

function fullAmong(failed: Failed): BacktalkError | undefined {
  return [...failed.values()].find((error) => isEngineError(error, 'engine_overloaded'));
}

function notHeld({ pinned, version }: Turn): BacktalkError {
  return pinned
    ? gatewayErrors.unknownModel({ param: 'model' })
    : gatewayErrors.noEngine({ version, retryAfterSeconds });
}

/** Our own refusal of an answer for which there is no room. */
export function isNoRoom(thrown: unknown): thrown is BacktalkError {
  return isBacktalkError(thrown, 'rate_limit_exceeded') || isBacktalkError(thrown, 'server_overloaded');
}

/** What an engine's failure means to a client. Its refusals of bad requests go through as they are. */
function errorForClient(error: BacktalkError, turn: Turn): BacktalkError {
  const { limit, param, retryAfterSeconds: wait = retryAfterSeconds } = error.detail;
  if (isNoRoom(error) || isEngineError(error, 'invalid_request', 'request_aborted')) return error;
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
