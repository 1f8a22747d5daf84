// Reads heads, and writes answers that are no streams: JSON values, and errors in the shape of the API that was asked.
import type { IncomingMessage, ServerResponse } from 'node:http';
import { asBacktalkError, isBacktalkError, newTrace, systemClock, traceFrom, type Trace } from '@backtalk/kit';
import { gatewayErrors } from '../errors.js';
import { anthropicError, errorEvent } from '../domain/anthropic-error.js';
import { openAiError } from '../domain/openai-error.js';
import { sseEvent } from '../domain/frame.js';
import { Discarder } from './discard.js';

/** One for all connections. */
const discarder = new Discarder(systemClock);

const requestIdPattern = /^[\x21-\x7e]{1,128}$/;

/** A client's own id for its request comes back to it. */
export function nameRequest(request: IncomingMessage, response: ServerResponse): void {
  const asked = headerIn(request, 'x-request-id');
  if (asked !== undefined && requestIdPattern.test(asked)) response.setHeader('X-Request-Id', asked);
}

export function headerIn({ headers }: IncomingMessage, name: string): string | undefined {
  const value = headers[name];
  return Array.isArray(value) ? value[0] : value;
}

/**
 * The client's trace, or one of the request's own, by the turn's id where it has one. Whether it is sampled is not for the
 * client to say.
 */
export function traceOf(request: IncomingMessage, isSampled: boolean, id = newTrace().traceId): Trace {
  const { traceparent } = traceFrom(headerIn(request, 'traceparent') ?? `00-${id}-${id.slice(-16)}-00`);
  return traceFrom(`${traceparent.slice(0, -2)}${isSampled ? '01' : '00'}`);
}

/** Aborted as soon as the connection closes before the answer was over, so that no engine works in vain. */
export function abortedWhenGone(response: ServerResponse): AbortSignal {
  const gone = new AbortController();
  // It may have closed while the request was being read.
  if (response.destroyed) gone.abort();
  response.once('close', () => {
    if (!response.writableFinished) gone.abort();
  });
  return gone.signal;
}

export function sendJson(response: ServerResponse, status: number, value: unknown, headers: object = {}): void {
  const text = JSON.stringify(value);
  response.writeHead(status, headOf(text, headers)).end(text);
}

/** Anthropic's API; all others are OpenAI's, or our own. */
export const messagesPath = '/v1/messages';

/** An answer that has begun gets its error as a frame, and ends. Errors from elsewhere are reported in our own words. */
export function sendError(request: IncomingMessage, response: ServerResponse, thrown: unknown): void {
  if (response.destroyed || response.writableEnded) return;
  const error = forClient(thrown);
  const isMessages = request.url?.startsWith(messagesPath) === true;
  const { status, headers, body } = isMessages ? anthropicError(error) : openAiError(error);
  const text = JSON.stringify(body);
  if (response.headersSent) response.end(isMessages ? errorEvent(error) : sseEvent(text));
  else if (isBacktalkError(thrown, 'request_too_large') || isLongToCome(request)) {
    response.writeHead(status, headOf(text, { ...headers, Connection: 'close' })).write(text);
    discarder.discard(request, () => response.end());
  } else response.writeHead(status, headOf(text, headers)).end(text);
}

export function forClient(thrown: unknown) {
  const error = asBacktalkError(thrown);
  return error.status === undefined || error.code === 'internal' ? gatewayErrors.internal({}, error) : error;
}

function headOf(text: string, headers: object) {
  return {
    'Content-Type': 'application/json; charset=utf-8',
    'Content-Length': Buffer.byteLength(text),
    ...headers,
  };
}

/** Much of the body is still to come, or it is unknown how much. */
function isLongToCome({ complete, headers }: IncomingMessage): boolean {
  const declared = Number(headers['content-length'] ?? (headers['transfer-encoding'] === undefined ? 0 : Infinity));
  return !complete && declared > waitedForBytes;
}

/** A connection is worth more than so many bytes that no handler reads. */
const waitedForBytes = 64 * 1024;
