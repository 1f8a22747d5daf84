import { IncomingMessage, ServerResponse } from 'node:http';
import { Socket } from 'node:net';
import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { gatewayErrors } from '../errors.js';
import { sendError } from './answer.js';

const piece = Buffer.alloc(16 * 1024);
const pauseMs = 3;

beforeEach(() => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
});

afterEach(() => {
  vi.useRealTimers();
});

/** A request that is refused for its size, of whose body three pieces lie ready; gives how many of them were taken. */
function refused(): () => number {
  const request = new IncomingMessage(new Socket());
  for (let at = 0; at < 3; at += 1) request.push(piece);
  sendError(request, new ServerResponse(request), gatewayErrors.bodyTooLarge({ limitBytes: 1 }));
  let taken = 0;
  request.on('data', () => (taken += 1));
  return () => taken;
}

async function passed(ms: number): Promise<void> {
  await new Promise(setImmediate);
  await vi.advanceTimersByTimeAsync(ms);
  await new Promise(setImmediate);
}

it('refused bodies of all connections share one pace: one piece of one of them in each pause', async () => {
  const bodies = Array.from({ length: 4 }, refused);
  const taken = () => bodies.reduce((sum, body) => sum + body(), 0);
  await passed(0);
  const atOnce = taken();
  await passed(pauseMs);
  expect(taken()).toBe(atOnce + 1);
  await passed(pauseMs);
  expect(taken()).toBe(atOnce + 2);
});

it.each([
  ['/v1/messages?beta=true', 'event: error\ndata: {"type":"error","error":{"type":"api_error"'],
  ['/v1/chat/completions', 'data: {"error":{"message":'],
])('an answer to %s that has begun ends in an error in the form of its API', (url, form) => {
  const request = new IncomingMessage(new Socket());
  request.url = url;
  const response = new ServerResponse(request);
  response.writeHead(200).flushHeaders();
  const end = vi.spyOn(response, 'end');
  sendError(request, response, gatewayErrors.engineBroke());
  expect(String(end.mock.calls[0]?.[0]).startsWith(form)).toBe(true);
});
