// What does the client itself say about its session?
//
// In: headers and body of a request. Out: the declared session, turn type and end, or a refusal. A header wins over the
// body's key. Body keys of this kind are for the gateway alone and are never forwarded. Pure.
import { keyedHash, type JsonObject } from '@backtalk/kit/pure';
import { gatewayErrors } from '../errors.js';

export interface DeclaredSession {
  /** The client's own name for it; empty when it gave none. */
  readonly session: string;
  readonly turnType: string;
  readonly done: boolean;
  /** The client's own name for the task that the session is an attempt at; empty: at none. */
  readonly group: string;
}

export type HeaderOf = (name: string) => string | undefined;

export const sessionBodyKeys = ['session_id', 'turn_type', 'session_done', 'group_id'] as const;

const nameCharactersMax = 256;
const yes = new Set(['1', 'true', 'yes', 'on']);

export function sessionInBody(body: JsonObject): DeclaredSession {
  return {
    session: named(body['session_id'], 'session_id'),
    turnType: named(body['turn_type'], 'turn_type'),
    done: isYes(body['session_done']),
    group: named(body['group_id'], 'group_id'),
  };
}

export function declaredSession(header: HeaderOf, inBody: DeclaredSession): DeclaredSession {
  const names = ['x-session-id', 'x-turn-type', 'x-session-done', 'x-group-id'];
  const [session, turnType, done, group] = names.map((name) => asText(header(name)));
  return {
    session: session === undefined ? inBody.session : named(session, 'session_id'),
    turnType: turnType === undefined ? inBody.turnType : named(turnType, 'turn_type'),
    done: done === undefined ? inBody.done : isYes(done),
    group: group === undefined ? inBody.group : named(group, 'group_id'),
  };
}

/** Headers are read as Latin-1; those whose bytes are UTF-8 are meant so. */
function asText(value: string | undefined): string | undefined {
  if (value === undefined || !/[\u0080-\u00ff]/.test(value)) return value;
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(Buffer.from(value, 'latin1'));
  } catch {
    return value;
  }
}

function isYes(done: unknown): boolean {
  return done === true || done === 1 || (typeof done === 'string' && yes.has(done.trim().toLowerCase()));
}

/** One turn's session until a parent says otherwise: named after the turn, so that the log can be asked for it. */
export function sessionOfTurn(turn: string): string {
  return turn.replace(/^turn_/, 'session_');
}

export function turnOfSession(session: string): string | undefined {
  return /^session_[0-9a-f]{32}$/.test(session) ? session.replace(/^session_/, 'turn_') : undefined;
}

/** A declared name becomes a token that subjects can hold and that cannot be guessed. */
export function sessionOfName(secret: string, tenant: string, user: string, name: string): string {
  return `session_${keyedHash(secret, `session\n${tenant}\n${user}\n${name}`, 32)}`;
}

/** As with a session's name: one person's, and in no fact as it was said. */
export function groupOfName(secret: string, tenant: string, user: string, name: string): string {
  return `group_${keyedHash(secret, `group\n${tenant}\n${user}\n${name}`, 32)}`;
}

/** A client's own name as it was given, in a request or in a path. */
export function named(value: unknown, param: string): string {
  if (value === undefined || value === null) return '';
  if (typeof value !== 'string') throw gatewayErrors.invalidParameter({ param, why: 'it must be a string' });
  const name = value.trim();
  if (name.length > nameCharactersMax)
    throw gatewayErrors.invalidParameter({ param, why: `it must have at most ${nameCharactersMax} characters` });
  return name;
}
