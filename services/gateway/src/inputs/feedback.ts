// POST /v1/feedback: what a client says an answer was worth, stored before it is confirmed.
//
// A turn of another tenant, or none at all, is answered alike: not found.
import type { Request, Response } from 'express';
import { gatewayErrors } from '../errors.js';
import { feedbackFact, readFeedback } from '../domain/feedback.js';
import { sendJson, traceOf } from './answer.js';
import type { Parts } from './parts.js';
import { readJsonBody } from './read-body.js';

const retryAfterSeconds = 2;

export async function feedback(parts: Parts, request: Request, response: Response): Promise<void> {
  const { config, events, access, turns } = parts;
  const { keyId, grant } = access.keys.identify(request.headers.authorization);
  const given = readFeedback((await readJsonBody(request, config.bodyBytesMax)).value);
  const opened = await turns.log.turn(access.callers.of(keyId, grant, undefined), given.turn);
  if (opened === undefined && turns.store.hasBacklog) throw gatewayErrors.logUnavailable({ retryAfterSeconds });
  if (opened === undefined) throw gatewayErrors.unknownTurn({ param: 'turn_id' });
  const stored = await turns.log.store('feedbackGiven', feedbackFact(given, opened.message), traceOf(request));
  events.feedbackStored(given.turn, given.score);
  sendJson(response, 200, { object: 'feedback', turn_id: given.turn, stored: true, repeated: stored === 'before' });
}
