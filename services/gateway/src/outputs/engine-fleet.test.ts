import { createLogger, Metrics, watchLeases } from '@backtalk/kit';
import { FakeClock, until } from '@backtalk/kit/testing';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { createEvents } from '../events.js';
import { startGateway, startLeasedEngine, startSurroundings, type Surroundings } from '../testing/started-gateway.js';
import { EngineFleet } from './engine-fleet.js';

let around: Surroundings;

beforeAll(async () => {
  around = await startSurroundings();
});

afterAll(() => around.stop());

it('an answer goes on to its end on a replica that left, however long ago', async () => {
  const clock = new FakeClock();
  const events = createEvents(createLogger({ service: 'gateway', level: 'silent' }), new Metrics('gateway'));
  const leases = await watchLeases(around.loader, 'loader');
  const fleet = new EngineFleet({ leases, apiKey: '', clock, events });
  fleet.start();
  const left = await startLeasedEngine(around, 'engine-1');
  Object.assign(left.engine.settings, { tokenMs: 5, answerTokens: 10_000, maxContext: 20_000 });
  const [replica] = await until(() => fleet.living().length === 1 && fleet.living());
  const request = { model: left.engine.baseModel, messages: [{ role: 'user', content: 'Hello' }] };
  const stream = fleet.client(replica ?? expect.unreachable()).chatStream(request, { deadlineMs: 120_000 });
  const frames = stream[Symbol.asyncIterator]();
  await frames.next();
  await left.lease.release();
  await until(() => fleet.living().length === 0);
  await clock.advance(60_000);
  const other = await startLeasedEngine(around, 'engine-2');
  await until(() => fleet.living().length === 1);
  expect(fleet.candidates('backtalk-v0').map(({ url }) => url)).toEqual([other.engine.url]);
  Object.assign(left.engine.settings, { tokenMs: 0 });
  let finish: string | undefined;
  for (let next = await frames.next(); next.done !== true; next = await frames.next())
    finish = next.value.finishReason ?? finish;
  expect(finish).toBe('stop');
  await Promise.all([other.stop(), left.stop(), fleet.stop()]);
});

it('another engine at the same address is spoken to as what it is', async () => {
  const events = createEvents(createLogger({ service: 'gateway', level: 'silent' }), new Metrics('gateway'));
  const leases = await watchLeases(around.loader, 'loader');
  const fleet = new EngineFleet({ leases, apiKey: '', clock: new FakeClock(), events });
  const replica = { url: 'http://127.0.0.1:9', dialect: 'vllm', baseModel: 'base', maxContext: 1 };
  const first = fleet.client(replica);
  expect(fleet.client({ ...replica })).toBe(first);
  const second = fleet.client({ ...replica, dialect: 'sglang' });
  expect(second).not.toBe(first);
  expect(fleet.client({ ...replica, dialect: 'sglang', baseModel: 'other' })).not.toBe(second);
  await fleet.stop();
});

it('a gateway sends neither prompt nor key to an engine that a loader leases where engines may not be', async () => {
  const elsewhere = await startLeasedEngine(around, 'engine-3');
  const started = await startGateway(around, { BACKTALK_ENGINE_HOSTS: '10.0.0.1' });
  await until(async () => (await started.metric('leased_engines_refused_total')) === 1);
  const answer = await fetch(`${started.url}/chat/completions`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ model: 'backtalk', messages: [{ role: 'user', content: 'Hello' }] }),
  });
  expect(answer.status).toBe(503);
  expect(elsewhere.engine.counts.requests).toBe(0);
  await started.gateway.stop();
  await elsewhere.stop();
});
