// POST /v1/feedback: what a client says an answer was worth, stored before it is confirmed.
//
// A turn of another tenant or policy, or none at all, is answered alike: not found. Feedback is its giver's, with the
// giver's consent, also where the turn is another's of the same tenant.
import type { Request, Response } from 'express';
import { gatewayErrors } from '../errors.js';
import { openPolicies } from '../domain/caller.js';
import { feedbackFact, readFeedback } from '../domain/feedback.js';
import { consentOf } from '../domain/trainability.js';
import { headerIn, sendJson, traceOf } from './answer.js';
import type { Parts } from './parts.js';
import { readJsonBody } from './read-body.js';

const retryAfterSeconds = 2;

export async function feedback(parts: Parts, request: Request, response: Response): Promise<void> {
  const { config, events, access, turns } = parts;
  const { keyId, grant } = access.keys.identify(request.headers.authorization);
  const given = readFeedback((await readJsonBody(request, config.bodyBytesMax)).value);
  const caller = access.callers.of(keyId, grant, given.user);
  const opened = await turns.log.turn(caller, given.turn);
  if (opened === undefined && turns.store.hasBacklog) throw gatewayErrors.logUnavailable({ retryAfterSeconds });
  if (opened === undefined || !openPolicies([opened.message.policy], grant).includes(opened.message.policy))
    throw gatewayErrors.unknownTurn({ param: 'turn_id' });
  const voice = {
    // A key that speaks for several people and names none speaks for the turn's own.
    giver: grant.acceptsUserField && given.user === undefined ? opened.message.user : caller.user,
    consent: consentOf({
      keyTrains: caller.train,
      requestHeader: headerIn(request, 'x-backtalk-train'),
      sessionTrains: true,
    }),
  };
  const fact = feedbackFact(given, opened.message, voice);
  const stored = await turns.log.store('feedbackGiven', fact, traceOf(request));
  events.feedbackStored(given.turn, given.score);
  sendJson(response, 200, { object: 'feedback', turn_id: given.turn, stored: true, repeated: stored === 'before' });
}
