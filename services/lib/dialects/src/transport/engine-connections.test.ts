import { createServer, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { engineErrors } from '../errors.js';
import { EngineConnections } from './engine-connections.js';

let server: Server;
let connections: EngineConnections;
let reply: (response: ServerResponse) => void;
let taken: number[];

beforeAll(async () => {
  server = createServer((_, response) => reply(response));
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  connections = new EngineConnections({ url: `http://127.0.0.1:${String((server.address() as AddressInfo).port)}` });
});

afterAll(async () => {
  await connections.close();
  server.closeAllConnections();
  server.close();
});

beforeEach(() => {
  taken = [];
});

function ask(bytesMax: number) {
  const grow = (bytes: number): void => {
    taken.push(bytes);
    if (bytes > bytesMax) throw engineErrors.overloaded({ retryAfterSeconds: 1 });
  };
  const room = { grow, shrink: () => undefined };
  return connections.request('GET', '/', undefined, { deadlineMs: 10_000, room });
}

describe('EngineConnections', () => {
  it('room for a whole reply is taken by its declared length, once', async () => {
    reply = (response) => response.writeHead(200, { 'content-length': 5 }).end('hello');
    expect((await ask(5)).text).toBe('hello');
    expect(taken).toEqual([5]);
  });

  it('room for a whole reply is taken as it comes where no length is declared', async () => {
    reply = (response) => {
      response.write('hello');
      response.end(' you');
    };
    expect((await ask(9)).text).toBe('hello you');
    expect(taken.reduce((sum, bytes) => sum + bytes, 0)).toBe(9);
  });

  it('a whole reply without room is refused before a byte of it has come, and the engine’s work ends', async () => {
    const left = new Promise((resolve) => {
      reply = (response) => response.on('close', resolve).writeHead(200, { 'content-length': 6 }).flushHeaders();
    });
    await expect(ask(5)).rejects.toMatchObject({ code: 'engine_overloaded' });
    await left;
  });

  it.each([
    ['', '/v1/models'],
    ['/', '/v1/models'],
    ['/v1', '/v1/models'],
    ['/openai/v1/', '/openai/v1/models'],
    ['/proxy', '/proxy/v1/models'],
    ['/v2/proxy/v1', '/v2/proxy/v1/models'],
    ['/v1beta/openai/', '/v1beta/openai/models'],
    ['/api/paas/v4', '/api/paas/v4/models'],
    ['/v1/accounts/one/openai', '/v1/accounts/one/openai/models'],
  ])('an address with the path "%s" is asked at %s', async (path, asked) => {
    let url: string | undefined;
    reply = (response) => {
      url = response.req.url;
      response.end('{}');
    };
    const { port } = server.address() as AddressInfo;
    const versioned = new EngineConnections({ url: `http://127.0.0.1:${String(port)}${path}` });
    await versioned.request('GET', '/v1/models', undefined, { deadlineMs: 10_000 });
    await versioned.close();
    expect(url).toBe(asked);
  });
});
