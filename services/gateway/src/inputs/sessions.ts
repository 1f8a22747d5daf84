// DELETE /v1/sessions/{id}: the client says that a conversation is over. It closes; it does not erase.
// POST /v1/sessions/{id}/outcome: it was an attempt at a task, and this is how it went.
//
// The id is the one in the answers' header, or the client's own. Valkey knows recent sessions; beyond that, a session
// that was named after its first turn is known to the log.
import type { Outcome, SessionEnded } from '@backtalk/proto/facts';
import type { Request, Response } from 'express';
import { gatewayErrors } from '../errors.js';
import type { Caller } from '../domain/caller.js';
import { parseJson } from '../domain/json-body.js';
import { factBytesLeast } from '../domain/log-bytes.js';
import { readOutcome } from '../domain/outcome.js';
import { consentOf } from '../domain/trainability.js';
import { named, sessionOfName, sessionOfTurn, turnOfSession } from '../domain/session-name.js';
import { admitted, type Admission } from './admit.js';
import { headerIn, sendJson, traceOf } from './answer.js';
import { refusePastShare } from './log-share.js';
import type { Parts } from './parts.js';
import { readBody } from './read-body.js';

const outcomeBytesMax = 4_096;

interface KnownSession {
  readonly session: string;
  readonly user: string;
  /** The last turn of it that is known. */
  readonly turn: string;
}

export function endSession(parts: Parts, request: Request, response: Response): Promise<void> {
  return admitted(parts, request, response, (admission) => end(parts, request, response, admission));
}

export function giveOutcome(parts: Parts, request: Request, response: Response): Promise<void> {
  return admitted(parts, request, response, (admission) => endWithOutcome(parts, request, response, admission));
}

async function end(parts: Parts, request: Request, response: Response, { keyId, grant }: Admission): Promise<void> {
  const { user } = request.query;
  const caller = parts.access.callers.of(keyId, grant, typeof user === 'string' ? user : undefined);
  const { id } = request.params;
  const known = await knownSession(parts, caller, id);
  await store(parts, request, { known, caller, outcome: undefined });
  sendJson(response, 200, { id, object: 'session', session: known.session, closed: true });
}

async function endWithOutcome(
  parts: Parts,
  request: Request,
  response: Response,
  { keyId, grant, room }: Admission,
): Promise<void> {
  const { bytes } = await readBody(request, { bytesMax: outcomeBytesMax, room });
  const { outcome, user } = readOutcome(parseJson(bytes));
  const caller = parts.access.callers.of(keyId, grant, user);
  const { id } = request.params;
  const known = await knownSession(parts, caller, id);
  // A session may be ended for another person of the tenant; what its attempt was worth is its own person's to say.
  if (known.user !== caller.user) throw gatewayErrors.unknownSession();
  const requestHeader = headerIn(request, 'x-backtalk-train');
  const consent = consentOf({ keyTrains: caller.train, requestHeader, sessionTrains: true });
  const { log } = parts.turns;
  if (!consent.train) {
    // The attempt is over, and what it was worth is not learned from.
    await store(parts, request, { known, caller, outcome: undefined });
    return sendJson(response, 200, {
      id,
      object: 'outcome',
      session: known.session,
      score: outcome.score,
      stored: false,
      repeated: false,
    });
  }
  const isNew =
    !(await log.isSilent({ ...known, tenant: caller.tenant })) &&
    (await store(parts, request, { known, caller, outcome }));
  // Its client may not have heard that it was stored.
  if (!isNew && !isSame(await log.endOf({ ...known, tenant: caller.tenant }), outcome))
    throw gatewayErrors.sessionOver();
  const { score } = outcome;
  sendJson(response, 200, { id, object: 'outcome', session: known.session, score, stored: true, repeated: !isNew });
}

function isSame(ended: SessionEnded | undefined, { score, attempts }: Outcome): boolean {
  return ended?.outcome?.score === score && ended.outcome.attempts === attempts;
}

async function knownSession(parts: Parts, caller: Caller, id: unknown): Promise<KnownSession> {
  refusePastShare(parts.access.shares, caller);
  const known = typeof id === 'string' ? await find(parts, caller, named(id, 'id')) : undefined;
  if (known === undefined) throw gatewayErrors.unknownSession();
  return known;
}

interface Ending {
  readonly known: KnownSession;
  readonly caller: Caller;
  readonly outcome: Outcome | undefined;
}

/** False: the session ended before with this turn. */
async function store(parts: Parts, request: Request, { known, caller, outcome }: Ending): Promise<boolean> {
  const { access, turns, events } = parts;
  const { session, user, turn } = known;
  const trace = traceOf(request, access.traces.samples());
  const ended = { session, user, turn, tenant: caller.tenant, outcome };
  let stored = await turns.log.store('sessionEnded', ended, trace);
  // A name that was used again after its end: each end is stored once, so this one is told by the last turn that it ends with.
  if (stored === 'before' && (await turns.log.endOf(ended)) === undefined)
    stored = await turns.log.store('sessionEnded', { ...ended, session: sessionOfTurn(turn) }, trace);
  access.shares.add(caller, factBytesLeast);
  events.sessionEnded(session);
  return stored === 'now';
}

async function find({ config, turns }: Parts, caller: Caller, id: string): Promise<KnownSession | undefined> {
  const { tenant, user } = caller;
  const names = new Set([id, sessionOfName(config.hashSecret, tenant, user, id)]);
  for (const session of names) {
    const seen = await turns.index.session({ tenant, user, session });
    if (seen !== undefined) return { session, user, turn: seen.turn };
  }
  const first = turnOfSession(id);
  const owner = first === undefined ? undefined : await turns.log.ownerOf(caller, first);
  if (owner !== undefined) return { session: id, user: owner.user, turn: owner.turn };
  return turns.log.turnOfSession(caller, names);
}
