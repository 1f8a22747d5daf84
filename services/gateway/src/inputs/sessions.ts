// DELETE /v1/sessions/{id}: the client says that a conversation is over. It closes; it does not erase.
//
// The id is the one in the answers' header, or the client's own. Valkey knows the sessions of late; beyond that, a
// session that was named after its first turn is known to the log.
import type { Request, Response } from 'express';
import { traceFrom } from '@backtalk/kit';
import { gatewayErrors } from '../errors.js';
import type { Caller } from '../domain/caller.js';
import { turnOfSession } from '../domain/session-name.js';
import { sendJson } from './answer.js';
import { headerOf } from './chat.js';
import { logAway, turnOf } from './feedback.js';
import type { Parts } from './parts.js';
import { sessionNamed } from './place-turn.js';

const lookMs = 3_000;

interface KnownSession {
  readonly session: string;
  readonly user: string;
  /** The last turn of it that is known. */
  readonly turn: string;
}

export async function endSession(parts: Parts, request: Request, response: Response): Promise<void> {
  const { keyId, grant } = parts.keys.identify(request.headers.authorization);
  const { user } = request.query;
  const caller = parts.callers.of(keyId, grant, typeof user === 'string' ? user : undefined);
  const id = request.params['id'];
  const known = typeof id === 'string' ? await find(parts, caller, id) : undefined;
  if (known === undefined) throw gatewayErrors.unknownSession();
  const fact = { ...known, tenant: caller.tenant };
  await parts.publisher
    .publish('sessionEnded', fact, { trace: traceFrom(headerOf(request)('traceparent')) })
    .catch(logAway);
  parts.events.sessionEnded(known.session);
  sendJson(response, 200, { id, object: 'session', session: known.session, closed: true });
}

async function find(parts: Parts, caller: Caller, id: string): Promise<KnownSession | undefined> {
  const { tenant, user } = caller;
  for (const session of [id, sessionNamed(parts, caller, id)]) {
    const seen = await parts.index.session({ tenant, user, session });
    if (seen !== undefined) return { session, user, turn: seen.turn };
  }
  const turn = turnOfSession(id);
  const opened = turn === undefined ? undefined : await turnOf(parts, caller, turn);
  if (opened !== undefined) return { session: id, user: opened.message.user, turn: opened.message.turn };
  return findInLog(parts, caller, id);
}

/** By the headers of the caller's own turns: for sessions that clients named, when Valkey has forgotten them. */
async function findInLog(parts: Parts, caller: Caller, id: string): Promise<KnownSession | undefined> {
  const { tenant, user } = caller;
  const names = new Set([id, sessionNamed(parts, caller, id)]);
  try {
    const filter = { turnOpened: { tenant, user } };
    for await (const { headers } of parts.reader.headers(['turnOpened'], {
      filter,
      signal: AbortSignal.timeout(lookMs),
    })) {
      const { session, turn } = headers;
      if (session !== undefined && turn !== undefined && names.has(session)) return { session, user, turn };
    }
    return undefined;
  } catch (error) {
    return logAway(error);
  }
}
