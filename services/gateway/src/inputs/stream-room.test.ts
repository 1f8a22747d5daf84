import { createServer, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { until } from '@backtalk/kit/testing';
import { afterAll, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest';
import { BodyBudget } from '../domain/body-budget.js';
import { gatewayErrors } from '../errors.js';
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
let engine: Server;
/** What the engine does once it has said a word. */
let goOn: (response: ServerResponse) => void;
/** Bytes for which each room was asked that is not left yet. */
let grown: number[];
/** For so many there is none. */
let refused: number;
let open: number;

/** Of a prompt, as an engine writes them. */
const ids = JSON.stringify({ tokens: Array.from({ length: 5_000 }, () => 12_345) });

const event = (json: string) => `data: ${json}\n\n`;
const chunk = (content: string, finish: string | null, more: object = {}) =>
  event(JSON.stringify({ model: 'fake', choices: [{ index: 0, delta: { content }, finish_reason: finish }], ...more }));

beforeAll(async () => {
  around = await startSurroundings();
  engine = createServer((request, response) => {
    request.resume();
    if (request.url === '/tokenize') return void response.writeHead(200, { 'content-length': ids.length }).end(ids);
    response.writeHead(200, { 'content-type': 'text/event-stream' }).write(chunk('word', null));
    goOn(response);
  });
  await new Promise<void>((resolve) => engine.listen(0, '127.0.0.1', resolve));
  const url = `http://127.0.0.1:${String((engine.address() as AddressInfo).port)}`;
  leased = await startLeasedEngine(around, 'engine-1', { url, dialect: 'vllm' });
  const roomOf = Reflect.get(BodyBudget.prototype, 'room');
  vi.spyOn(BodyBudget.prototype, 'room').mockImplementation(function (this: BodyBudget, keyId, tenant) {
    const room = roomOf.call(this, keyId, tenant);
    let isOpen = true;
    open += 1;
    const leave = (): void => {
      room.leave();
      if (isOpen) open -= 1;
      isOpen = false;
    };
    return {
      grow: (bytes) => {
        if (bytes === refused) throw gatewayErrors.rateLimited({ what: 'the room of the test', retryAfterSeconds: 1 });
        room.grow(bytes);
        grown.push(bytes);
      },
      mayGrow: (bytes) => {
        grown.push(bytes);
        return room.mayGrow(bytes);
      },
      shrink: (bytes) => room.shrink(bytes),
      leave,
    };
  });
  started = await startGateway(around);
  await ready(started);
});

afterAll(async () => {
  vi.restoreAllMocks();
  await started?.gateway.stop();
  engine?.closeAllConnections();
  engine?.close();
  await leased?.stop();
  await around?.stop();
});

beforeEach(() => {
  [grown, open, refused] = [[], 0, Infinity];
});

async function ask(signal?: AbortSignal): Promise<Response> {
  const body = JSON.stringify({ model: 'backtalk', messages: [{ role: 'user', content: 'Hi' }], stream: true });
  const headers = { 'content-type': 'application/json' };
  return fetch(`${started.url}/chat/completions`, { method: 'POST', headers, body, ...(signal && { signal }) });
}

/** A room of the request's body, and one of its answer. */
const rooms = 2;

describe('room of a streamed answer', () => {
  it.each([
    ['its end', (response: ServerResponse) => response.end(chunk('', 'stop') + event('[DONE]')), '[DONE]'],
    ['the engine’s death', (response: ServerResponse) => response.destroy(), 'error'],
  ])('room of a stream is taken, and given back at %s', async (_end, end, last) => {
    let ends: () => unknown = () => undefined;
    goOn = (response) => (ends = () => end(response));
    const response = await ask();
    expect(open).toBe(rooms);
    ends();
    expect(await response.text()).toContain(last);
    await until(() => open === 0, { what: 'all room to be given back' });
    // Of the body, of what came of the engine, and of what went to the client.
    expect(grown.length).toBeGreaterThanOrEqual(3);
  });

  it('room of a stream is given back when its client goes away', async () => {
    goOn = () => undefined;
    const leaving = new AbortController();
    await ask(leaving.signal);
    expect(open).toBe(rooms);
    leaving.abort();
    await until(() => open === 0, { what: 'all room to be given back' });
  });

  it('ids of a stream take room beside it, and where there is none it goes on, is stored with its words, and not trained on', async () => {
    const prompt = { prompt_token_ids: Array.from({ length: 3_000 }, () => 7) };
    const idsBytes = 8 * prompt.prompt_token_ids.length;
    goOn = (response) => response.end(chunk('', null, prompt) + chunk('', 'stop') + event('[DONE]'));
    expect(await (await ask()).text()).toContain('[DONE]');
    expect(grown).toContain(idsBytes);
    refused = idsBytes;
    const text = await (await ask()).text();
    expect(text).toContain('[DONE]');
    const turn = /"id":"(\w+)"/.exec(text)?.[1] ?? '';
    const fact = await until(() => around.reader.last('turnCompleted', { turn }), { what: 'the turn' });
    expect(fact.message).toMatchObject({ text: 'word', promptIds: [], trainable: false });
    expect(fact.message.untrainableReasons).toContain('no_room');
  });
});

it('ids that are only counted take room as an answer does, and are refused where there is none', async () => {
  const count = () => {
    const body = JSON.stringify({ model: 'backtalk', messages: [{ role: 'user', content: 'Hi' }] });
    const headers = { 'content-type': 'application/json' };
    return fetch(`${started.url}/messages/count_tokens`, { method: 'POST', headers, body });
  };
  expect(await (await count()).json()).toEqual({ input_tokens: 5_000 });
  expect(grown).toContain(ids.length);
  refused = ids.length;
  expect((await count()).status).toBe(429);
});
