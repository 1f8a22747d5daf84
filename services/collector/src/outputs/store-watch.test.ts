import { createLogger, Metrics, systemClock } from '@backtalk/kit';
import { connectValkey } from '@backtalk/kit/valkey';
import { FakeClock, startNats, startValkey, until, type TestNats, type TestValkey } from '@backtalk/kit/testing';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { createEvents } from '../events.js';
import { StoreWatch } from './store-watch.js';

let nats: TestNats;
let valkey: TestValkey;

beforeAll(async () => {
  [nats, valkey] = await Promise.all([startNats(), startValkey()]);
});
afterAll(() => Promise.all([nats.stop(), valkey.stop()]));

it('says how full streams and Valkey are, and which of them is away', async () => {
  const logger = createLogger({ service: 'collector', level: 'silent' });
  const metrics = new Metrics('collector');
  const redis = connectValkey({ url: valkey.url, name: 'test', logger });
  const broker = await nats.connect('collector');
  const events = createEvents(logger, metrics);
  const watch = new StoreWatch({
    broker,
    valkey: redis,
    events,
    clock: systemClock,
    everyMs: 50,
    natsMonitorUrl: nats.monitorUrl,
  });
  const figure = async (series: string) => {
    const line = (await metrics.registry.metrics()).split('\n').find((one) => one.startsWith(`${series} `));
    return line === undefined ? undefined : Number(line.slice(series.length));
  };
  const stream = (name: string, of: string) => figure(`backtalk_collector_stream_${name}{stream="${of}"}`);
  const store = (name: string) => figure(`backtalk_collector_store_up{store="${name}"}`);
  watch.start();
  await until(async () => (await store('broker')) === 1 && (await store('valkey')) === 1);
  await (await nats.connect('admin')).js.publish('backtalk.turn.opened.a.b.c', 'x'.repeat(1_000));
  await until(async () => ((await stream('bytes', 'TURNS')) ?? 0) > 1_000);
  const beside = { subject: 'backtalk.turn.opened.a.b.c', bytes: 5_000_000 };
  await (await nats.connect('admin')).js.publish('$KV.payloads.digest', JSON.stringify(beside));
  await until(async () => ((await stream('bytes', 'TURNS')) ?? 0) > 5_000_000);
  expect(await stream('messages', 'TURNS')).toBe(1);
  expect(await stream('bytes_max', 'TURNS')).toBeGreaterThan(1024 ** 2);
  expect(await stream('bytes_max', 'WEIGHTS')).toBeUndefined();
  expect(await figure('backtalk_collector_valkey_bytes')).toBeGreaterThan(100_000);
  const room = (name: string, kind: string) => figure(`backtalk_collector_${name}{kind="${kind}"}`);
  const held = (await room('broker_bytes', 'storage')) ?? 0;
  expect(held).toBeGreaterThan(1_000);
  expect(await room('broker_bytes_max', 'storage')).toBeGreaterThan(held);
  expect(await room('broker_bytes_max', 'memory')).toBeGreaterThan(0);
  await valkey.kill();
  await until(async () => (await store('valkey')) === 0);
  expect(await store('broker')).toBe(1);
  await valkey.restart();
  await until(async () => (await store('valkey')) === 1);
  await watch.stop();
  redis.disconnect();
}, 30_000);

it('a store that answered late once is looked at again at once, and is not away until the next round', async () => {
  const logger = createLogger({ service: 'collector', level: 'silent' });
  const metrics = new Metrics('collector');
  const redis = connectValkey({ url: valkey.url, name: 'test', logger });
  const clock = new FakeClock();
  const events = createEvents(logger, metrics);
  const watch = new StoreWatch({
    broker: await nats.connect('collector'),
    valkey: redis,
    events,
    clock,
    natsMonitorUrl: '',
  });
  const isUp = async (value: number) =>
    (await metrics.registry.metrics()).includes(`backtalk_collector_store_up{store="valkey"} ${String(value)}`);
  await until(() => redis.status === 'ready');
  watch.start();
  await clock.advance(0);
  await until(() => isUp(1));
  await until(() => clock.waiting === 1);
  valkey.pause();
  await clock.advance(15_000);
  await until(() => isUp(0), { what: 'The look that failed', timeoutMs: 10_000 });
  valkey.resume();
  await until(() => clock.waiting === 1);
  await clock.advance(1_000);
  await until(() => isUp(1), { what: 'The look after it' });
  await watch.stop();
  redis.disconnect();
}, 30_000);
