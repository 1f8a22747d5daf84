import { EngineLease, Lease } from '@backtalk/proto/weights';
import { afterAll, afterEach, beforeAll, expect, it } from 'vitest';
import { baseSettings } from '../config/base-settings.js';
import { readConfig } from '../config/read-config.js';
import { createLogger } from '../telemetry/logger.js';
import { Metrics } from '../telemetry/metrics.js';
import { FakeClock } from '../testing/fake-clock.js';
import { startNats, type TestNats } from '../testing/nats-server.js';
import { until } from '../testing/until.js';
import { type LookUp, watchEngineLeases } from './engine-leases.js';
import { leaseBucket, type LeaseView } from './leases.js';

let nats: TestNats;
const views: LeaseView[] = [];

beforeAll(async () => {
  nats = await startNats();
});

afterEach(async () => {
  for (const view of views.splice(0)) view.stop();
  const bucket = leaseBucket(await nats.connect('loader'));
  for (const instance of ['one', 'two']) await bucket.delete(`loader.${instance}`);
});

afterAll(() => nats.stop());

/** As the loader's own user may, whatever stands in it. */
async function lease(instance: string, url: string): Promise<void> {
  const engine = EngineLease.fromPartial({ url, ready: true, pools: ['serving'] });
  const bucket = leaseBucket(await nats.connect('loader'));
  await bucket.put(`loader.${instance}`, Lease.fromPartial({ kind: 'loader', instance, engine }));
}

async function watch(engineHosts?: readonly string[], lookUp?: LookUp) {
  const lines: string[] = [];
  const metrics = new Metrics('gateway');
  const clock = new FakeClock();
  const view = await watchEngineLeases({
    broker: await nats.connect('gateway'),
    logger: createLogger({ service: 'test', level: 'warn', destination: { write: (line) => lines.push(line) } }),
    metrics,
    clock,
    config: { engineHosts: engineHosts ?? readConfig({ hosts: baseSettings.engineHosts }, {}).hosts },
    ...(lookUp === undefined ? {} : { lookUp }),
  });
  views.push(view);
  const metric = async (name: string) => {
    const found = new RegExp(`^backtalk_gateway_${name} (\\d+)$`, 'm').exec(await metrics.registry.metrics());
    return Number(found?.[1]);
  };
  return { view, lines, clock, metric, urls: () => view.current().map(({ engine }) => engine?.url) };
}

it.each([
  'http://203.0.113.9:30030',
  'https://engine.elsewhere',
  'http://127.0.0.1@203.0.113.9:30030',
  'http://127.0.0.1.elsewhere:30030',
  'http://169.254.169.254/latest',
  'file://127.0.0.1/etc',
  'engine',
])('an engine that a loader leases at %s is none on one machine, and what is refused is said once', async (url) => {
  await lease('one', url);
  const { urls, lines, metric } = await watch();
  expect(urls()).toEqual([]);
  expect(await metric('leased_engines_refused')).toBe(1);
  // It is renewed, and another comes: the first is no news.
  await lease('one', url);
  await lease('two', 'http://127.0.0.1:30030/v1');
  await until(() => urls().length === 1);
  expect(lines.filter((line) => line.includes('engine_lease_refused'))).toHaveLength(1);
  expect(lines.join('')).toContain('"instance":"one"');
  expect(await metric('leased_engines_refused_total')).toBe(1);
});

it.each(['http://127.0.0.1:1', 'http://localhost:2/v1', 'http://[::1]:3'])(
  '%s is an engine of one machine',
  async (url) => {
    await lease('one', url);
    const { urls, lines, metric } = await watch();
    expect(urls()).toEqual([url]);
    expect(lines).toEqual([]);
    expect(await metric('leased_engines_refused')).toBe(0);
  },
);

it('an entry is a name, an address, the names below a domain, or any', async () => {
  await lease('one', 'http://a.engines.example:8000');
  await lease('two', 'http://engines.example.elsewhere:8000');
  const own = 'http://a.engines.example:8000';
  expect((await watch(['*.engines.example'])).urls()).toEqual([own]);
  expect((await watch(['*.Engines.Example'])).urls()).toEqual([own]);
  expect((await watch(['A.engines.example'])).urls()).toEqual([own]);
  expect((await watch(['engines.example', '10.0.0.1'], () => Promise.resolve([]))).urls()).toEqual([]);
  expect((await watch(['*'])).urls()).toHaveLength(2);
});

it('an address is known however it is spelled', async () => {
  await lease('one', 'http://[fd00::1]:30030');
  for (const entry of ['fd00::1', '[fd00:0:0:0::1]', 'FD00:0::1'])
    expect((await watch([entry])).urls(), entry).toEqual(['http://[fd00::1]:30030']);
});

it('what a loader says of an allowed engine is told while a resolver does not answer', async () => {
  await lease('one', 'http://engine.example:30030');
  const hanging = new Promise<readonly string[]>(() => undefined);
  let answer: Promise<readonly string[]> = Promise.resolve([]);
  const { view, urls } = await watch(['engine.example', 'others'], () => answer);
  const told: string[] = [];
  view.onChange((leases) => told.push(leases.map(({ engine }) => engine?.url).join()));
  answer = hanging;
  await lease('two', 'http://203.0.113.9:30030');
  await lease('one', 'http://engine.example:30031');
  await until(() => told.length > 0, { what: 'the change' });
  expect(told.at(-1)).toBe('http://engine.example:30031');
  expect(urls()).toEqual(['http://engine.example:30031']);
});

it('a name stands for its addresses of the moment: pods that come are engines, and pods that went are none', async () => {
  let addresses = ['10.0.0.1', 'fd00::1'];
  const { urls, view, clock } = await watch(['engines'], () => Promise.resolve(addresses));
  const told: number[] = [];
  view.onChange((leases) => told.push(leases.length));
  await lease('one', 'http://10.0.0.1:30030');
  await lease('two', 'http://[fd00::2]:30030');
  await until(() => urls().length === 1);
  expect(urls()).toEqual(['http://10.0.0.1:30030']);
  addresses = ['fd00::2'];
  await clock.advance(2_000);
  await until(() => urls().join() === 'http://[fd00::2]:30030');
  expect(told.at(-1)).toBe(1);
});

it('a resolver that does not answer takes no engine away, and a name that is gone has no engines', async () => {
  let failure: (Error & { code?: string }) | undefined;
  const lookUp = () => (failure === undefined ? Promise.resolve(['10.0.0.1']) : Promise.reject(failure));
  await lease('one', 'http://10.0.0.1:30030');
  const { urls, clock, lines } = await watch(['engines'], lookUp);
  expect(urls()).toHaveLength(1);
  failure = Object.assign(new RangeError('no answer'), { code: 'EAI_AGAIN' });
  await clock.advance(2_000);
  await until(() => lines.some((line) => line.includes('engine_host_not_looked_up')));
  expect(urls()).toHaveLength(1);
  failure = Object.assign(new RangeError('no such name'), { code: 'ENOTFOUND' });
  await clock.advance(2_000);
  await until(() => urls().length === 0);
});
