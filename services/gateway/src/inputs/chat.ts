// POST /v1/chat/completions: takes a request in, has it answered as a stream or whole, and tells what went wrong.
//
// The key is checked before anything is read, and everything about the request before an engine is asked. Nothing here
// waits for judge, trainer or publisher.
import type { IncomingMessage, ServerResponse } from 'node:http';
import { inSpan, traceFrom } from '@backtalk/kit';
import { readChatRequest } from '../domain/chat-request.js';
import type { HeaderOf } from '../domain/session-name.js';
import type { Turn } from '../domain/turn.js';
import { forCaller, nameRequest, requestName, sendError } from './answer.js';
import { ClientPresence } from './client-presence.js';
import type { Exchange } from './exchange.js';
import type { Parts } from './parts.js';
import { placeTurn } from './place-turn.js';
import { readJsonBody } from './read-body.js';
import { answerStream } from './chat-stream.js';
import { answerWhole } from './chat-whole.js';

const route = 'chat_completions';

export async function chat(parts: Parts, request: IncomingMessage, response: ServerResponse): Promise<void> {
  const { events } = parts;
  events.requestTaken();
  nameRequest(request, response);
  try {
    await answerChat(parts, request, response);
  } catch (thrown) {
    const error = forCaller(thrown);
    events.refused(route, error);
    sendError(request, response, error);
  } finally {
    events.requestLeft();
    events.answered(route, response.statusCode);
  }
}

async function answerChat(parts: Parts, request: IncomingMessage, response: ServerResponse): Promise<void> {
  const startedMs = parts.clock.now();
  const { keyId, grant } = parts.keys.identify(request.headers.authorization);
  const leave = parts.places.enter(keyId, grant.limits.concurrency);
  try {
    const body = await readJsonBody(request, parts.config.bodyBytesMax);
    const chatRequest = readChatRequest(body.value);
    parts.store.admit(body.bytes);
    const caller = parts.callers.of(keyId, grant, chatRequest.user);
    const placed = await placeTurn(parts, chatRequest, caller, headerOf(request));
    const { turn } = placed;
    const untraced = {
      placed,
      response,
      startedMs,
      request: chatRequest,
      headers: headersOf(request, turn),
      signal: new ClientPresence(response),
    };
    const parent = traceFrom(headerOf(request)('traceparent') ?? traceparentOf(turn.id));
    const attributes = { 'backtalk.turn': turn.id, 'backtalk.version': turn.version };
    await inSpan(route, { kind: 'server', parent, attributes }, (trace) => answer(parts, { ...untraced, trace }));
  } finally {
    leave();
  }
}

async function answer(parts: Parts, exchange: Exchange): Promise<void> {
  try {
    await (exchange.request.stream ? answerStream(parts, exchange) : answerWhole(parts, exchange));
  } catch (thrown) {
    nameTurn(exchange);
    throw thrown;
  }
}

/** A turn that nobody traces yet is traced under its own id. */
function traceparentOf(turn: string): string {
  const id = turn.slice('turn_'.length);
  return `00-${id}-${id.slice(-16)}-01`;
}

/** Written at once with the status, which costs less than to set them one by one. */
function headersOf(request: IncomingMessage, { id, session, version }: Turn): Exchange['headers'] {
  return {
    'X-Request-Id': requestName(request) ?? id,
    'X-Backtalk-Turn': id,
    'X-Backtalk-Session': session,
    'X-Backtalk-Weights': version,
  };
}

/** An answer that failed before it began names its turn all the same. */
function nameTurn({ response, headers }: Exchange): void {
  if (!response.headersSent) for (const name in headers) response.setHeader(name, headers[name] ?? '');
}

export function headerOf({ headers }: IncomingMessage): HeaderOf {
  return (name) => {
    const value = headers[name];
    return Array.isArray(value) ? value[0] : value;
  };
}
