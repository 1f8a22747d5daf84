// POST /v1/feedback: what somebody says an answer was worth, stored before it is confirmed.
//
// A turn of another tenant, or none at all, is answered alike: not found.
import type { Request, Response } from 'express';
import { asBacktalkError, traceFrom, type StoredFact } from '@backtalk/kit';
import { gatewayErrors } from '../errors.js';
import type { Caller } from '../domain/caller.js';
import { feedbackFact, readFeedback } from '../domain/feedback.js';
import { sendJson } from './answer.js';
import { headerOf } from './chat.js';
import type { Parts } from './parts.js';
import { readJsonBody } from './read-body.js';

const retryAfterSeconds = 2;
const lookMs = 2_000;

export async function feedback(parts: Parts, request: Request, response: Response): Promise<void> {
  const { keyId, grant } = parts.keys.identify(request.headers.authorization);
  const { value } = await readJsonBody(request, parts.config.bodyBytesMax);
  const given = readFeedback(value);
  const caller = parts.callers.of(keyId, grant, undefined);
  const turn = await turnOf(parts, caller, given.turn);
  if (turn === undefined && parts.store.hasBacklog) throw gatewayErrors.logUnavailable({ retryAfterSeconds });
  if (turn === undefined) throw gatewayErrors.unknownTurn({ param: 'turn_id' });
  const { tenant, user, policy } = turn.message;
  const fact = feedbackFact(given, { tenant, user, policy });
  const trace = traceFrom(headerOf(request)('traceparent'));
  const { stored } = await parts.publisher.publish('feedbackGiven', fact, { trace }).catch(logAway);
  parts.events.feedbackStored(given.turn, given.score);
  sendJson(response, 200, { object: 'feedback', turn_id: given.turn, stored: true, repeated: stored === 'before' });
}

/** The user whose turn it is may differ from the key's own, within the tenant. */
export async function turnOf(
  { reader }: Parts,
  { tenant }: Caller,
  turn: string,
): Promise<StoredFact<'turnOpened'> | undefined> {
  return reader.last('turnOpened', { tenant, turn }, { timeoutMs: lookMs }).catch(logAway);
}

/** Whatever the broker's reason, the caller can only try again. */
export function logAway(cause: unknown): never {
  throw gatewayErrors.logUnavailable({ retryAfterSeconds }, asBacktalkError(cause));
}
