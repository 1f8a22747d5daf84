import { once } from 'node:events';
import { createServer, type Server } from 'node:http';
import { connect, type AddressInfo } from 'node:net';
import { decodeConversation } from '@backtalk/kit';
import { until } from '@backtalk/kit/testing';
import { afterAll, beforeAll, expect, it, vi } from 'vitest';
import {
  ready,
  startGateway,
  startLeasedEngine,
  startSurroundings,
  type LeasedEngine,
  type StartedGateway,
  type Surroundings,
} from '../testing/started-gateway.js';

let around: Surroundings;
let leased: LeasedEngine;
let started: StartedGateway;
/** An engine that reads nothing of what it is sent: the fake one would, on this event loop. */
let engine: Server;
let heard: Buffer;

const mebibyte = 2 ** 20;
const answer = JSON.stringify({
  model: 'backtalk-v0',
  choices: [{ index: 0, message: { role: 'assistant', content: 'Hi' }, token_ids: [1], finish_reason: 'stop' }],
  usage: { prompt_tokens: 1, completion_tokens: 1 },
  prompt_token_ids: [1],
});

beforeAll(async () => {
  around = await startSurroundings();
  engine = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on('data', (chunk: Buffer) => chunks.push(chunk));
    request.on('end', () => {
      if (request.method === 'POST') heard = Buffer.concat(chunks);
      response.setHeader('content-type', 'application/json').end(answer);
    });
  });
  await new Promise<void>((resolve) => engine.listen(0, '127.0.0.1', resolve));
  const url = `http://127.0.0.1:${(engine.address() as AddressInfo).port}`;
  leased = await startLeasedEngine(around, 'engine-1', { url });
  started = await startGateway(around);
  await ready(started);
});

afterAll(async () => {
  vi.restoreAllMocks();
  await started?.gateway.stop();
  await leased?.stop();
  engine?.close();
  await around?.stop();
});

/** The longest text that is parsed or written as JSON on this event loop meanwhile. */
async function longestJson(work: () => Promise<unknown>): Promise<number> {
  let longest = 0;
  const { parse, stringify } = JSON;
  const spies = [
    vi.spyOn(JSON, 'parse').mockImplementation((text, reviver) => {
      longest = Math.max(longest, text.length);
      return parse(text, reviver) as unknown;
    }),
    vi.spyOn(JSON, 'stringify').mockImplementation((value: unknown) => {
      const text = stringify(value);
      longest = Math.max(longest, text?.length ?? 0);
      return text;
    }),
  ];
  await work();
  for (const spy of spies) spy.mockRestore();
  return longest;
}

const members = Array.from({ length: 40_000 }, (_, index) => [`k${index}${'y'.repeat(100)}`, index + 0.5] as const);
const tool = { type: 'function', function: { name: 'f', parameters: Object.fromEntries(members) } };
const messages = [
  { role: 'user', content: 'é'.repeat(mebibyte) },
  { role: 'assistant', content: 'a'.repeat(10) },
  { role: 'user', content: 'hi' },
];

interface Fields {
  readonly messages: readonly unknown[];
  readonly tools: readonly unknown[];
  readonly chat_template_kwargs?: object;
  readonly max_tokens?: number;
  readonly stop?: readonly string[];
}

it.each<[string, Fields]>([
  ['of many members', { messages: messages.slice(2), tools: [tool] }],
  ['of long messages', { messages, tools: [] }],
  ['of everything', { messages, tools: [tool], chat_template_kwargs: { a: 1 }, max_tokens: 3, stop: ['x', 'y'] }],
])('the event loop parses and writes nothing of a large body %s, and engine and log have it all', async (_, fields) => {
  const body = JSON.stringify({ model: 'backtalk', ...fields });
  let turn = '';
  const longest = await longestJson(async () => {
    const sent = { method: 'POST', headers: { 'content-type': 'application/json' }, body };
    const response = await fetch(`${started.url}/chat/completions`, sent);
    expect([response.status, await response.text()]).toEqual([200, expect.stringContaining('Hi')]);
    turn = response.headers.get('x-backtalk-turn') ?? '';
  });
  expect(longest).toBeLessThan(64 * 1024);
  expect(JSON.parse(heard.toString())).toMatchObject({
    ...fields,
    model: expect.any(String) as string,
    temperature: 0.8,
  });
  const opened = await until(() => around.reader.last('turnOpened', { turn }), { what: 'turn.opened' });
  const { conversation } = opened.message;
  if (conversation === undefined) throw new TypeError('no conversation');
  const stored = await decodeConversation(conversation, () => Promise.reject(new TypeError('no base')));
  expect(stored).toEqual({
    messages: fields.messages,
    tools: fields.tools,
    templateArguments: fields.chat_template_kwargs ?? {},
  });
});

it('bodies of one key that come to their ends together are read one in each turn of the event loop', async () => {
  const content = 'a'.repeat(200_000);
  const body = JSON.stringify({ model: 'backtalk', messages: [{ role: 'user', content }] });
  const head = `POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: ${body.length}\r\n\r\n`;
  const sockets = Array.from({ length: 12 }, () => connect(started.gateway.ports.http, '127.0.0.1'));
  let answered = 0;
  for (const socket of sockets) socket.once('data', () => (answered += 1));
  await Promise.all(sockets.map((socket) => once(socket, 'connect')));
  await Promise.all(
    sockets.map((socket) => new Promise((sent) => socket.write(head + body.slice(0, -1), () => sent(undefined)))),
  );
  // All that was sent has been read.
  for (let turns = 0; turns < 200; turns += 1) await new Promise(setImmediate);
  /** In which turn of the event loop each was parsed: gateway and clients share it. */
  const readIn: number[] = [];
  let turn = 0;
  const { parse } = JSON;
  const spy = vi.spyOn(JSON, 'parse').mockImplementation((text, reviver) => {
    if (text.length >= body.length) readIn.push(turn);
    return parse(text, reviver) as unknown;
  });
  const count = (): void => {
    turn += 1;
    if (answered < sockets.length) setImmediate(count);
  };
  count();
  for (const socket of sockets) socket.write(body.slice(-1));
  await until(() => answered === sockets.length, { what: 'all answers' });
  spy.mockRestore();
  expect(readIn).toHaveLength(sockets.length);
  expect(new Set(readIn).size).toBe(sockets.length);
  for (const socket of sockets) socket.destroy();
});
