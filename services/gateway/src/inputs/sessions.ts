// DELETE /v1/sessions/{id}: the client says that a conversation is over. It closes; it does not erase.
//
// The id is the one in the answers' header, or the client's own. Valkey knows recent sessions; beyond that, a session
// that was named after its first turn is known to the log.
import type { Request, Response } from 'express';
import { gatewayErrors } from '../errors.js';
import type { Caller } from '../domain/caller.js';
import { factBytesLeast } from '../domain/log-bytes.js';
import { sessionOfName, sessionOfTurn, turnOfSession } from '../domain/session-name.js';
import { admitted, type Admission } from './admit.js';
import { sendJson, traceOf } from './answer.js';
import { refusePastShare } from './log-share.js';
import type { Parts } from './parts.js';

interface KnownSession {
  readonly session: string;
  readonly user: string;
  /** The last turn of it that is known. */
  readonly turn: string;
}

export function endSession(parts: Parts, request: Request, response: Response): Promise<void> {
  return admitted(parts, request, response, (admission) => end(parts, request, response, admission));
}

async function end(parts: Parts, request: Request, response: Response, { keyId, grant }: Admission): Promise<void> {
  const { access, turns, events } = parts;
  const { user } = request.query;
  const caller = access.callers.of(keyId, grant, typeof user === 'string' ? user : undefined);
  const id = request.params['id'];
  refusePastShare(access.shares, caller);
  const known = typeof id === 'string' ? await find(parts, caller, id) : undefined;
  if (known === undefined) throw gatewayErrors.unknownSession();
  const trace = traceOf(request, access.traces.samples());
  const ended = { session: known.session, user: known.user, turn: known.turn, tenant: caller.tenant };
  const stored = await turns.log.store('sessionEnded', ended, trace);
  // A name that was used again after its end: each end is stored once, so this one is told by the last turn that it ends with.
  const again = { session: sessionOfTurn(known.turn), user: known.user, turn: known.turn, tenant: caller.tenant };
  if (stored === 'before') await turns.log.store('sessionEnded', again, trace);
  access.shares.add(caller, factBytesLeast);
  events.sessionEnded(known.session);
  sendJson(response, 200, { id, object: 'session', session: known.session, closed: true });
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
