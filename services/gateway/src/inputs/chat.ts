// POST /v1/chat/completions, /v1/responses and /v1/messages: takes a request in and has it answered.
//
// Key and limits are checked before anything is read, and everything about the request before an engine is asked. Nothing
// here waits for judge, trainer or publisher.
import type { IncomingMessage, ServerResponse } from 'node:http';
import { asBacktalkError, inSpan } from '@backtalk/kit';
import { gatewayErrors } from '../errors.js';
import { largeBodyBytes } from '../domain/body-budget.js';
import type { ChatRequest, ClientApi, Lacking, ReadingRules } from '../domain/chat-request.js';
import type { Caller } from '../domain/caller.js';
import { showsLessons, withShown } from '../domain/shown-lessons.js';
import type { Turn } from '../domain/turn.js';
import { admitted, type Admission } from './admit.js';
import { abortedWhenGone, headerIn, traceOf } from './answer.js';
import { answerTurn } from './answer-turn.js';
import { openTurn, type OpenedTurn } from './open-turn.js';
import type { Parts } from './parts.js';
import { readBody, type Body } from './read-body.js';

/** In some 250 µs. */
const quicklyReadBytes = 32 * 1024;
const retryAfterSeconds = 2;

/** Names of their routes, in metrics and traces. */
export const answerRoutes: Readonly<Record<ClientApi, string>> = {
  chat: 'chat_completions',
  responses: 'responses',
  messages: 'messages',
};

export function answering(api: ClientApi) {
  return (parts: Parts, request: IncomingMessage, response: ServerResponse): Promise<void> => {
    const startedMs = parts.clock.now();
    return admitted(parts, request, response, async (admission) => {
      parts.events.requestTaken();
      try {
        await answer(parts, api, { request, response, startedMs }, admission);
      } finally {
        parts.events.requestLeft();
      }
    });
  };
}

interface Asked {
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  readonly startedMs: number;
}

async function answer(
  parts: Parts,
  api: ClientApi,
  { request, response, startedMs }: Asked,
  { keyId, grant, room }: Admission,
): Promise<void> {
  const { callers, shares, traces } = parts.access;
  const { bytes, members, asked } = await readRequest(parts, request, { keyId, room }, { api });
  const caller = callers.of(keyId, grant, asked.user);
  const fullShare = shares.fullOf(caller);
  const isFull = fullShare !== undefined;
  const chatRequest =
    asked.lacking === undefined ? asked : await wholeRequest(parts, caller, asked.lacking, { members, room, isFull });
  if (fullShare === undefined) parts.turns.store.admit(bytes);
  const opened = await openTurn(parts, chatRequest, caller, (name) => headerIn(request, name));
  const withLessons = await shownIn(parts, chatRequest, opened.turn, headerIn(request, 'x-backtalk-lessons'));
  const turn = { ...opened.turn, shown: withLessons?.shown };
  if (fullShare !== undefined) admitRefusal(parts, opened);
  const headers = {
    ...(response.hasHeader('X-Request-Id') ? {} : { 'X-Request-Id': turn.id }),
    // By which Anthropic's clients name an answer.
    ...(api === 'messages' ? { 'Request-Id': turn.id } : {}),
    ...(fullShare === undefined ? {} : { 'X-Backtalk-Capture': `off; full=${fullShare}` }),
    'X-Backtalk-Turn': turn.id,
    'X-Backtalk-Session': turn.session,
    'X-Backtalk-Weights': turn.version,
    'X-Backtalk-Train': turn.consent.train ? 'on' : 'off',
  };
  const parent = traceOf(request, traces.samples(), turn.id.slice('turn_'.length));
  const attributes = { 'backtalk.turn': turn.id, 'backtalk.version': turn.version };
  await inSpan(answerRoutes[api], { kind: 'server', parent, attributes }, (trace) => {
    const signal = abortedWhenGone(response);
    return answerTurn(parts, {
      ...opened,
      turn,
      request: chatRequest,
      shownMessages: withLessons?.json,
      response,
      headers,
      signal,
      trace,
      startedMs,
      fullShare,
    });
  });
}

/** With what it names by ids, and its client left to the log. */
async function wholeRequest(
  { access, config, turns }: Parts,
  caller: Caller,
  lacking: Lacking,
  { members, room, isFull }: Pick<Body & Admission, 'members' | 'room'> & { readonly isFull: boolean },
): Promise<ChatRequest> {
  await access.fairBodies.of(caller.keyId);
  try {
    const read = await turns.earlier.named(caller, lacking, largeBodyBytes);
    const fromLog = Buffer.from(JSON.stringify(read));
    // It is there twice: as it was read, and in what is asked.
    room.grow(2 * fromLog.length);
    const body = { bytes: Buffer.from(lacking.body), members: fromLog.length > quicklyReadBytes ? Infinity : members };
    return await access.reader.read(body, { ...config, api: 'responses', fromLog });
  } catch (thrown) {
    const error = asBacktalkError(thrown);
    const notFound = {
      item_not_found: gatewayErrors.itemNotFound,
      previous_response_not_found: gatewayErrors.previousResponseNotFound,
    };
    const again = Object.entries(notFound).find(([code]) => code === error.code)?.[1];
    if (again === undefined) throw error;
    // It may lie in the spool.
    if (turns.store.hasBacklog) throw gatewayErrors.logUnavailable({ retryAfterSeconds }, error);
    throw again({ param: String(error.detail['param']), isFull }, error);
  }
}

/** With the size of its body, and its members as far as they were counted. */
export async function readRequest(
  { access, config }: Parts,
  request: IncomingMessage,
  { keyId, room, bytesMax = config.bodyBytesMax }: Pick<Admission, 'keyId' | 'room'> & { readonly bytesMax?: number },
  wanted: Pick<ReadingRules, 'api' | 'wanted'>,
): Promise<{ readonly bytes: number; readonly members: number; readonly asked: ChatRequest }> {
  const { bodies, fairBodies, reader } = access;
  const body = await readBody(request, { bytesMax: Math.min(bytesMax, config.bodyBytesMax, bodies.keyBytesMax), room });
  // A large body's own bytes go with it to the thread that reads it.
  const bytes = body.bytes.length;
  const { members } = body;
  // Several that came to their ends together would be read as one piece.
  if (bytes > quicklyReadBytes) await fairBodies.of(keyId);
  return { bytes, members, asked: await reader.read(body, { ...config, ...wanted }) };
}

/** A version that is asked for by its name answers as it is. */
async function shownIn(
  parts: Parts,
  { messages, humanMessage }: ChatRequest,
  { policy, caller, pinned }: Turn,
  header: string | undefined,
) {
  if (pinned || !showsLessons(parts.config.showLessons === 'on', header)) return undefined;
  return withShown(messages, humanMessage, await parts.turns.lessons.of(policy, caller));
}

/** A turn that is not stored leaves its "no" in the log all the same: where that finds no room, it is not answered. */
function admitRefusal(parts: Parts, { turn, followsNo }: OpenedTurn): void {
  const { refusals, shares } = parts.access;
  if (!refusals.isNew(turn, followsNo) || refusals.permits(turn.caller.keyId)) return;
  throw gatewayErrors.rateLimited({
    what: 'conversations beyond its share of the log that may not be learned from',
    retryAfterSeconds: shares.secondsToNextDay(),
  });
}
