// POST /v1/feedback: what a client says an answer was worth, stored before it is confirmed.
//
// A turn of another tenant or policy, or none at all, is answered alike: not found. Feedback is its giver's, with the
// giver's consent, also where the turn is another's of the same tenant.
import type { Request, Response } from 'express';
import { gatewayErrors } from '../errors.js';
import { openPolicies } from '../domain/caller.js';
import { feedbackFact, readFeedback } from '../domain/feedback.js';
import { parseJson } from '../domain/json-body.js';
import { factBytesLeast } from '../domain/log-bytes.js';
import { consentOf } from '../domain/trainability.js';
import { admitted, type Admission } from './admit.js';
import { headerIn, sendJson, traceOf } from './answer.js';
import { refusePastShare } from './log-share.js';
import type { Parts } from './parts.js';
import { readBody } from './read-body.js';

const retryAfterSeconds = 2;
/** For the key's other feedback; where the log takes none, each of it waits for its own end. */
const waitMaxMs = 5_000;

/** Twice what its longest comment and correction come to in JSON, where no character is written as an escape. */
const bodyBytesMax = 64 * 1024;

/** It, and a judgement that holds what was said of the turn before. */
const factsOfFeedback = 4;

export function feedback(parts: Parts, request: Request, response: Response): Promise<void> {
  return admitted(parts, request, response, (admission) => store(parts, request, response, admission));
}

async function store(
  { clock, events, access, turns }: Parts,
  request: Request,
  response: Response,
  { keyId, grant, room }: Admission,
): Promise<void> {
  const { shares, traces } = access;
  const { bytes } = await readBody(request, { bytesMax: bodyBytesMax, room });
  const given = readFeedback(parseJson(bytes));
  const caller = access.callers.of(keyId, grant, given.user);
  refusePastShare(shares, caller);
  const owner = await turns.log.ownerOf(caller, given.turn);
  if (owner === undefined && turns.store.hasBacklog) throw gatewayErrors.logUnavailable({ retryAfterSeconds });
  if (owner === undefined || !openPolicies([owner.policy], grant).includes(owner.policy))
    throw gatewayErrors.unknownTurn({ param: 'turn_id' });
  const voice = {
    // A key that speaks for several people and names none speaks for the turn's own.
    giver: grant.acceptsUserField && given.user === undefined ? owner.user : caller.user,
    consent: consentOf({
      keyTrains: caller.train,
      requestHeader: headerIn(request, 'x-backtalk-train'),
      sessionTrains: true,
    }),
  };
  const trace = traceOf(request, traces.samples());
  // One of a key at a time: each is read by collector and judge, which others wait for.
  const fact = feedbackFact(given, owner, voice);
  const askedMs = clock.now();
  const stored = await access.feedback.run(keyId, () => {
    if (clock.now() - askedMs > waitMaxMs) throw gatewayErrors.logUnavailable({ retryAfterSeconds });
    return turns.log.store('feedbackGiven', fact, trace);
  });
  shares.add(caller, factsOfFeedback * factBytesLeast + bytes.length);
  events.feedbackStored(given.turn, given.score);
  sendJson(response, 200, { object: 'feedback', turn_id: given.turn, stored: true, repeated: stored === 'before' });
}
