import { Lease, Routes } from '@backtalk/proto/weights';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { z } from 'zod';
import type { Broker } from '../broker/connect.js';
import { ensureStreams } from '../broker/streams.js';
import { collect } from '../testing/collect.js';
import { FakeClock } from '../testing/fake-clock.js';
import { startNats, type TestNats } from '../testing/nats-server.js';
import { KeptWarnings } from '../testing/silent-logger.js';
import { until } from '../testing/until.js';
import { jsonCodec, kvBucket, type KvChange } from './kv-bucket.js';
import { holdLease, leaseBucket, watchLeases } from './leases.js';
import { singleton } from './singleton.js';

const ttlMs = 1_000;
let nats: TestNats;
let publisher: Broker;
let gateway: Broker;

beforeAll(async () => {
  nats = await startNats({ streams: { leaseTtlMs: ttlMs } });
  publisher = await nats.connect('publisher');
  gateway = await nats.connect('gateway');
});

afterAll(() => nats.stop());

const routes = (fence: number, policy = 'backtalk') => Routes.fromPartial({ policy, fence });

describe('a bucket that is gone', () => {
  it('a watcher follows a bucket again once it is made again', async () => {
    const own = await startNats();
    const warnings = new KeptWarnings();
    const [writer, reader] = await Promise.all([own.connect('publisher'), own.connect('gateway', warnings)]);
    const seen: string[] = [];
    const heard = (change: KvChange<Routes>) => seen.push(`${change.kind} ${change.key}`);
    const stop = await kvBucket(reader, 'routes', Routes).watch('*', heard);
    await kvBucket(writer, 'routes', Routes).put('before', routes(1));
    await until(() => seen.includes('put before'));
    const admin = await own.connect('admin');
    await admin.jsm.streams.delete('KV_routes');
    await until(() => warnings.text.includes('kv_watch_lost'), { what: 'The loss of the bucket' });
    await ensureStreams(admin, {});
    await kvBucket(writer, 'routes', Routes).put('after', routes(2));
    await until(() => seen.includes('put after'), { what: 'What was written to the new bucket' });
    stop();
    await own.stop();
  });
});

describe('a bucket', () => {
  it('gives back the newest value and its revision, and nothing for what is not there', async () => {
    const bucket = kvBucket(publisher, 'routes', Routes);
    const revision = await bucket.put('newest', routes(7));
    expect(await bucket.get('newest')).toEqual({ value: routes(7), revision });
    expect(await bucket.get('absent')).toBeUndefined();
    await bucket.delete('newest');
    expect(await bucket.get('newest')).toBeUndefined();
  });

  it('lets one of several writers win', async () => {
    const bucket = kvBucket(publisher, 'routes', Routes);
    const creations = await Promise.allSettled([1, 2, 3].map((fence) => bucket.create('race', routes(fence))));
    expect(creations.filter((result) => result.status === 'fulfilled')).toHaveLength(1);
    const { revision = 0 } = (await bucket.get('race')) ?? {};
    await bucket.update('race', routes(4), revision);
    await expect(bucket.update('race', routes(5), revision)).rejects.toMatchObject({ code: 'kv_conflict' });
    await bucket.delete('race');
    expect(await bucket.create('race', routes(6))).toBeGreaterThan(revision);
  });

  it('holds what each service may write only', async () => {
    await expect(kvBucket(gateway, 'routes', Routes).put('backtalk', routes(1))).rejects.toMatchObject({
      code: 'broker_forbidden',
    });
    const trainer = await nats.connect('trainer');
    await expect(kvBucket(trainer, 'keys', jsonCodec(z.string())).get('k')).rejects.toMatchObject({
      code: 'broker_forbidden',
    });
    expect(await kvBucket(gateway, 'keys', jsonCodec(z.string())).get('k')).toBeUndefined();
  });

  it('lists what it holds', async () => {
    const bucket = kvBucket(await nats.connect('cli'), 'settings', jsonCodec(z.object({ paused: z.boolean() })));
    await bucket.put('one.learning', { paused: true });
    await bucket.put('two.learning', { paused: false });
    await bucket.delete('two.learning');
    expect(await collect(bucket.entries('*.learning'))).toMatchObject([
      { key: 'one.learning', value: { paused: true } },
    ]);
  });

  it('tells a watcher what there is, then every change once, over a restart of the broker', async () => {
    const writer = kvBucket(publisher, 'routes', Routes);
    await writer.put('watched', routes(1, 'watched'));
    const changes: KvChange<Routes>[] = [];
    const ending = new AbortController();
    await kvBucket(gateway, 'routes', Routes).watch('watched', (change) => changes.push(change), ending.signal);
    expect(changes).toMatchObject([{ kind: 'put', key: 'watched', value: { fence: 1 } }]);
    await writer.put('watched', routes(2, 'watched'));
    await until(() => changes.length === 2);
    await nats.restart();
    // Once, also when the word that it was written is lost.
    const isWritten = async () => (await writer.get('watched'))?.value.fence === 3;
    const write = async () => (await isWritten()) || (await writer.put('watched', routes(3, 'watched'))) > 0;
    await until(write, { what: 'writing after the restart' });
    await until(() => changes.some((change) => change.kind === 'put' && change.value.fence === 3));
    await writer.delete('watched');
    await until(() => changes.at(-1)?.kind === 'deleted');
    expect(changes.map((change) => (change.kind === 'put' ? change.value.fence : change.kind))).toEqual([
      1,
      2,
      3,
      'deleted',
    ]);
    ending.abort();
  });
});

describe('a lease', () => {
  const lease = (instance: string, health = '') =>
    Lease.fromPartial({ kind: 'gateway', instance, healthAddress: health });

  it('a lease is seen while it is renewed, changes when refreshed, and goes when it is released', async () => {
    const view = await watchLeases(publisher, 'gateway', { ttlMs });
    let health = 'one';
    const hold = holdLease({ broker: gateway, lease: () => lease('g1', health), everyMs: 200 });
    await until(() => view.current().length === 1);
    health = 'two';
    await hold.refresh();
    await until(() => view.current()[0]?.healthAddress === 'two');
    await hold.release();
    await until(() => view.current().length === 0);
    await until(async () => (await leaseBucket(gateway).get('gateway.g1')) === undefined);
    view.stop();
  });

  it('a lease expires for those who look when its holder has died, on the broker and in their view', async () => {
    const view = await watchLeases(publisher, 'gateway', { ttlMs });
    const dying = await nats.connect('gateway');
    holdLease({ broker: dying, lease: () => lease('g2'), everyMs: 200 });
    await until(() => view.current().length === 1);
    await dying.nc.close();
    await until(() => view.current().length === 0);
    await until(async () => (await leaseBucket(gateway).get('gateway.g2')) === undefined);
    view.stop();
  });

  it('a lease does not expire in a view while the broker is away', async () => {
    const clock = new FakeClock();
    const view = await watchLeases(publisher, 'gateway', { ttlMs, clock });
    const hold = holdLease({ broker: gateway, lease: () => lease('g3'), everyMs: 200 });
    await until(() => view.current().length === 1);
    const counts: number[] = [];
    const off = view.onChange((leases) => counts.push(leases.length));
    await nats.kill();
    await until(() => publisher.status() === 'down');
    await clock.advance(ttlMs * 3);
    await nats.restart();
    await until(() => gateway.status() === 'up' && publisher.status() === 'up');
    await hold.refresh();
    await until(async () => (await leaseBucket(gateway).get('gateway.g3')) !== undefined);
    expect(counts).toEqual([]);
    expect(view.current()).toHaveLength(1);
    off();
    await hold.release();
    view.stop();
  });
});

/** A promise, and what resolves it. */
function held(): [Promise<void>, () => void] {
  let release: () => void = () => undefined;
  const promise = new Promise<void>((resolve) => (release = resolve));
  return [promise, () => release()];
}

describe('a leader', () => {
  // Longer than a machine that is busy holds a process up: who leads must not lose the lead for that.
  const leadTtlMs = 10_000;
  let election: TestNats;

  beforeAll(async () => {
    election = await startNats({ streams: { leaseTtlMs: leadTtlMs } });
  });

  afterAll(() => election.stop());

  it('a leader that leads again brings to its end first what it began before', async () => {
    const clock = new FakeClock();
    const broker = await election.connect('trainer');
    const events: string[] = [];
    const [left, leave] = held();
    const [answered, answer] = held();
    const made = singleton(broker, 'trainer', 'slow', {
      ttlMs: leadTtlMs,
      everyMs: 100,
      clock,
      onGained: () => void events.push('gained'),
      onLost: async () => {
        events.push('lost');
        await left;
        events.push('left');
      },
    });
    await made.start();
    // The answer to its renewal is on its way when the time is over in which it had to come.
    const { bucket } = made as unknown as { readonly bucket: { update: (...given: unknown[]) => Promise<number> } };
    const update = bucket.update.bind(bucket);
    let isAnswered = false;
    bucket.update = async (...given) => {
      const revision = await update(...given);
      await answered;
      isAnswered = true;
      return revision;
    };
    await clock.advance(0.75 * leadTtlMs + 50);
    expect(events).toEqual(['gained', 'lost']);
    answer();
    await until(() => isAnswered);
    await clock.advance(0);
    expect([made.leading, ...events]).toEqual([false, 'gained', 'lost']);
    leave();
    await until(() => made.leading);
    expect(events).toEqual(['gained', 'lost', 'left', 'gained']);
    await made.stop();
  });

  it('a leader is the only one; another leads when it dies, and at once when it stops', async () => {
    const events: string[] = [];
    const candidate = async (instance: string) => {
      const broker = await election.connect('trainer');
      const made = singleton(broker, 'trainer', instance, {
        ttlMs: leadTtlMs,
        everyMs: 100,
        onGained: () => void events.push(`${instance} gained`),
        onLost: () => void events.push(`${instance} lost`),
      });
      await made.start();
      return { broker, made };
    };
    const first = await candidate('a');
    const second = await candidate('b');
    expect([first.made.leading, second.made.leading]).toEqual([true, false]);
    // It cannot renew any more: it must stop leading before anybody else begins.
    await first.broker.nc.close();
    await until(() => second.made.leading, { timeoutMs: 60_000 });
    expect(events).toEqual(['a gained', 'a lost', 'b gained']);
    const third = await candidate('c');
    await second.made.stop();
    await until(() => third.made.leading);
    expect(events.slice(3)).toEqual(['b lost', 'c gained']);
    await third.made.stop();
    await first.made.stop();
  });
});
