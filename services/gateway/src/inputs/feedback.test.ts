import { FactPublisher, MutexByKey, systemClock } from '@backtalk/kit';
import { lagBehind, until } from '@backtalk/kit/testing';
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

const json = { 'content-type': 'application/json' };

async function say(): Promise<string> {
  const client = new OpenAI({ baseURL: started.url, apiKey: 'none', maxRetries: 0 });
  const messages = [{ role: 'user' as const, content: 'hi' }];
  return (await client.chat.completions.create({ model: 'backtalk', messages })).id;
}

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
  const id = await say();
  const give = async (comment: string) => {
    const body = JSON.stringify({ turn_id: id, score: -1, comment });
    return (await fetch(`${started.url}/feedback`, { method: 'POST', headers: json, body })).status;
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

it('a turn that was just given is known, though the copy of the log at hand lags', async () => {
  const turn = await say();
  const { message } = await until(() => around.reader.last('turnOpened', { turn }), { what: 'the turn' });
  const copy = await lagBehind(around.nats, message);
  try {
    const body = JSON.stringify({ turn_id: turn, score: 1 });
    const give = async () => (await fetch(`${started.url}/feedback`, { method: 'POST', headers: json, body })).status;
    const statuses: number[] = [];
    for (let given = 0; given < 20; given += 1) statuses.push(await give());
    expect(new Set(statuses)).toEqual(new Set([200]));
    const unknown = JSON.stringify({ turn_id: turn.replace(/.{4}$/, '0000'), score: 1 });
    expect((await fetch(`${started.url}/feedback`, { method: 'POST', headers: json, body: unknown })).status).toBe(404);
  } finally {
    await copy.remove();
  }
});
