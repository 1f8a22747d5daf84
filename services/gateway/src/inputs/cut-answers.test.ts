import { writeFile } from 'node:fs/promises';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { sha256Hex } from '@backtalk/kit';
import { until } from '@backtalk/kit/testing';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
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
/** The engine has a request. */
let hear: () => void = () => undefined;

beforeAll(async () => {
  around = await startSurroundings();
  // Says words without ids or counts where it streams, and nothing where it does not; it never ends.
  engine = createServer((request, response) => {
    let asked = '';
    request.on('data', (piece: Buffer) => (asked += piece.toString()));
    request.on('end', () => {
      hear();
      const words = { choices: [{ index: 0, delta: { content: 'word '.repeat(50) } }] };
      if (asked.includes('"stream":true'))
        response.writeHead(200, { 'content-type': 'text/event-stream' }).write(`data: ${JSON.stringify(words)}\n\n`);
    });
  });
  await new Promise<void>((resolve) => engine.listen(0, '127.0.0.1', resolve));
  const url = `http://127.0.0.1:${String((engine.address() as AddressInfo).port)}`;
  leased = await startLeasedEngine(around, 'engine-1', { url, dialect: 'openai' });
  const path = around.directory.join('keys.json');
  const keys = ['streams', 'whole'].map((user) => {
    const limits = { tokensPerMinute: 60 };
    return { sha256: sha256Hex(user), tenant: 'acme', user, policies: ['backtalk'], limits };
  });
  await writeFile(path, JSON.stringify({ keys }));
  started = await startGateway(around, { BACKTALK_KEYS_FILE: path });
  await ready(started);
});

afterAll(async () => {
  await started?.gateway.stop();
  engine?.closeAllConnections();
  engine?.close();
  await leased?.stop();
  await around?.stop();
});

/** Goes away as soon as the words have come, or the engine has the prompt; resolves to the status, if there was one. */
async function askAndLeave(key: string, asked: object): Promise<number> {
  const leaving = new AbortController();
  const heard = new Promise<number>((resolve) => (hear = () => resolve(0)));
  const headers = { 'content-type': 'application/json', authorization: `Bearer ${key}` };
  const body = JSON.stringify({ model: 'backtalk', ...asked });
  const { signal } = leaving;
  const asking = fetch(`${started.url}/chat/completions`, { method: 'POST', headers, body, signal }).then(
    async (response) => {
      await response.body?.getReader().read();
      return response.status;
    },
    () => 0,
  );
  const status = await Promise.race([asking, heard]);
  if (status === 0 && 'stream' in asked) await asking;
  leaving.abort();
  return status;
}

const saying = (content: string) => [{ role: 'user', content }];

describe('limits by the minute', () => {
  it.each([
    ['streams that are read and closed before their end', 'streams', { messages: saying('Hi'), stream: true }],
    ['whole answers that are left before they come', 'whole', { messages: saying('word '.repeat(100)) }],
  ])('tokens of answers that were cut count for the key’s minute: %s', async (_what, key, asked) => {
    const isRefused = async () => (await askAndLeave(key, asked)) === 429;
    const limit = until(isRefused, { what: 'the limit of tokens a minute', timeoutMs: 10_000 });
    await expect(limit).resolves.toBe(true);
  });
});
