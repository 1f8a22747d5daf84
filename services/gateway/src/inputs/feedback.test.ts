import { FactPublisher, MutexByKey, systemClock } from '@backtalk/kit';
import { until } from '@backtalk/kit/testing';
import OpenAI from 'openai';
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
let lateMs = 0;

beforeAll(async () => {
  around = await startSurroundings();
  leased = await startLeasedEngine(around, 'engine-1');
  started = await startGateway(around, {}, { ...systemClock, now: () => systemClock.now() + lateMs });
  await ready(started);
});

afterAll(async () => {
  await started.gateway.stop();
  await leased.stop();
  await around.stop();
});

it('feedback of one key is stored one at a time, and what waited too long is refused', async () => {
  const client = new OpenAI({ baseURL: started.url, apiKey: 'none', maxRetries: 0 });
  const { id } = await client.chat.completions.create({
    model: 'backtalk',
    messages: [{ role: 'user', content: 'hi' }],
  });
  const give = async (comment: string) => {
    const body = JSON.stringify({ turn_id: id, score: -1, comment });
    const headers = { 'content-type': 'application/json' };
    return (await fetch(`${started.url}/feedback`, { method: 'POST', headers, body })).status;
  };
  let storing = 0;
  let release: () => void = () => undefined;
  const released = new Promise<void>((resolve) => (release = resolve));
  const held = vi.spyOn(FactPublisher.prototype, 'publish').mockImplementation(async (name) => {
    expect(name).toBe('feedbackGiven');
    storing += 1;
    await released;
    return { stored: 'now', sequence: storing };
  });
  const waiting = vi.spyOn(MutexByKey.prototype, 'run');
  const first = give('too long');
  await until(() => storing === 1, { what: 'the first to be stored' });
  const second = give('too short');
  await until(() => waiting.mock.calls.length === 2, { what: 'the second to wait' });
  lateMs = 6_000;
  release();
  expect([await first, await second, storing]).toEqual([200, 503, 1]);
  held.mockRestore();
  waiting.mockRestore();
  expect(await give('just right')).toBe(200);
});
