// Writes answers that are no streams: JSON values, and errors in OpenAI's shape.
import type { IncomingMessage, ServerResponse } from 'node:http';
import { asBacktalkError, type BacktalkError } from '@backtalk/kit';
import { gatewayErrors } from '../errors.js';
import { openAiError } from '../domain/openai-error.js';
import { sseEvent } from '../domain/frame.js';

/** Ours are told as they are; what comes from elsewhere is told in our own words. */
export function forCaller(thrown: unknown): BacktalkError {
  const error = asBacktalkError(thrown);
  return error.status === undefined || error.code === 'internal' ? gatewayErrors.internal({}, error) : error;
}

export function sendJson(response: ServerResponse, status: number, value: unknown, headers: object = {}): void {
  const body = JSON.stringify(value);
  response.writeHead(status, {
    'Content-Type': 'application/json; charset=utf-8',
    'Content-Length': Buffer.byteLength(body),
    ...headers,
  });
  response.end(body);
}

const requestIdPattern = /^[\x21-\x7e]{1,128}$/;

/** A client's own id for its request, which comes back to it. */
export function requestName(request: IncomingMessage): string | undefined {
  const asked = request.headers['x-request-id'];
  return typeof asked === 'string' && requestIdPattern.test(asked) ? asked : undefined;
}

export function nameRequest(request: IncomingMessage, response: ServerResponse): void {
  const name = requestName(request);
  if (name !== undefined) response.setHeader('X-Request-Id', name);
}

/** An answer that has begun gets its error as a frame, and ends. */
export function sendError(request: IncomingMessage, response: ServerResponse, error: BacktalkError): void {
  if (response.destroyed || response.writableEnded) return;
  const { status, headers, body } = openAiError(error);
  if (response.headersSent) {
    response.end(sseEvent(JSON.stringify(body)));
    return;
  }
  if (error.code !== gatewayErrors.bodyTooLarge({ limitBytes: 0 }).code) {
    sendJson(response, status, body, headers);
    return;
  }
  const text = JSON.stringify(body);
  response.writeHead(status, {
    'Content-Type': 'application/json; charset=utf-8',
    'Content-Length': Buffer.byteLength(text),
    Connection: 'close',
  });
  response.write(text);
  discard(request, () => response.end());
}

const discardMsMax = 2_000;
const discardBytesMax = 64 * 1024 * 1024;

/**
 * Lets a client that is still sending finish, within bounds: closing at once would reset the connection, and it would
 * never read why.
 */
function discard(request: IncomingMessage, then: () => void): void {
  let bytes = 0;
  const timer = setTimeout(then, discardMsMax);
  const done = (): void => {
    clearTimeout(timer);
    then();
  };
  request.on('data', (chunk: Buffer) => {
    bytes += chunk.length;
    if (bytes > discardBytesMax) done();
  });
  request.once('end', done);
  request.once('close', done);
  request.resume();
}
