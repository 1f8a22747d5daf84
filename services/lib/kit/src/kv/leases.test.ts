import { Lease } from '@backtalk/proto/weights';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import type { Broker } from '../broker/connect.js';
import { FakeClock } from '../testing/fake-clock.js';
import { startNats, type TestNats } from '../testing/nats-server.js';
import { until } from '../testing/until.js';
import { bucketStream } from '../topology/buckets.js';
import { holdLease, leaseBucket, type LeaseHold, type LeaseView, watchLeases } from './leases.js';

const ttlMs = 1_000;
/** On the broker leases outlast these tests: what goes from a view goes by the view's own clock. */
const brokerTtlMs = 3_600_000;

let nats: TestNats;
let admin: Broker;
let viewer: Broker;
let clock: FakeClock;

beforeAll(async () => {
  nats = await startNats({ streams: { leaseTtlMs: brokerTtlMs } });
  [admin, viewer] = await Promise.all([nats.connect('admin'), nats.connect('publisher')]);
});

afterAll(() => nats.stop());

beforeEach(() => {
  clock = new FakeClock();
});

/** Renewed by `refresh` alone. */
async function held(broker: Broker, instance: string, health = () => ''): Promise<LeaseHold> {
  const kind = broker.user;
  const lease = () => Lease.fromPartial({ kind, instance, healthAddress: health() });
  const hold = holdLease({ broker, lease, clock: new FakeClock() });
  await hold.refresh();
  return hold;
}

/** As a broker does that cannot elect: it is there, gives what it has, and takes nothing. */
async function takeLeases(areTaken: boolean): Promise<void> {
  await admin.jsm.streams.update(bucketStream('leases'), { max_msg_size: areTaken ? -1 : 1 });
}

function names(view: LeaseView): string[] {
  return view.current().map(({ instance }) => instance);
}

/** Moves time on; resolves when the view has acted on what the broker answers it. */
async function pass(ms: number): Promise<void> {
  await clock.advance(ms);
  await leaseBucket(viewer).get('gateway.nobody');
}

describe('a view whose own leases the broker does not take', () => {
  it('no lease expires while the broker takes none; when it takes them again, each has the whole time, and a dead one goes', async () => {
    let health = 'before';
    const gateway = await nats.connect('gateway');
    const dying = await nats.connect('gateway');
    const own = await held(viewer, 'p1');
    const living = await held(gateway, 'living', () => health);
    await held(dying, 'gone');
    const view = await watchLeases(viewer, 'gateway', { ttlMs, clock });
    expect(names(view)).toEqual(['gone', 'living']);

    await takeLeases(false);
    await own.refresh();
    await dying.close();
    for (let halves = 0; halves < 5; halves += 1) await pass(ttlMs / 2);
    expect(names(view)).toEqual(['gone', 'living']);

    await takeLeases(true);
    await own.refresh();
    await pass(ttlMs * 0.75);
    expect(names(view)).toEqual(['gone', 'living']);
    health = 'after';
    await living.refresh();
    await until(() => view.current().some(({ healthAddress }) => healthAddress === 'after'));
    await pass(ttlMs / 2);
    await until(() => names(view).length === 1);
    expect(names(view)).toEqual(['living']);
    view.stop();
    await Promise.all([own.release(), living.release()]);
  });

  it('leases expire again when the view has released its own', async () => {
    const dying = await nats.connect('gateway');
    const own = await held(viewer, 'p2');
    await held(dying, 'left');
    const view = await watchLeases(viewer, 'gateway', { ttlMs, clock });
    const hasLeft = () => !names(view).includes('left');
    await takeLeases(false);
    await own.refresh();
    await dying.close();
    await pass(ttlMs);
    expect(hasLeft()).toBe(false);
    await own.release();
    await pass(ttlMs);
    await until(hasLeft);
    view.stop();
    await takeLeases(true);
  });
});

/** Hears nothing of what is told while `hears` is false, as when the server that tells has died; what it asks is answered. */
function deafTo(broker: Broker, hears: () => boolean): Broker {
  const subscribe: Broker['nc']['subscribe'] = (subject, options = {}) => {
    const { callback } = options;
    const heard: typeof callback = (error, message) => {
      if (hears()) callback?.(error, message);
    };
    return broker.nc.subscribe(subject, callback === undefined ? options : { ...options, callback: heard });
  };
  const nc = new Proxy(broker.nc, {
    get: (target, name) => {
      if (name === 'subscribe') return subscribe;
      const value: unknown = Reflect.get(target, name);
      return typeof value === 'function' ? (value.bind(target) as unknown) : value;
    },
  });
  return { ...broker, nc };
}

describe('a view that hears late', () => {
  it('a view that hears late knows what is so once it has asked', async () => {
    let health = 'before';
    let hears = true;
    const gateway = await nats.connect('gateway');
    const lease = await held(gateway, 'late', () => health);
    const view = await watchLeases(
      deafTo(viewer, () => hears),
      'gateway',
      { ttlMs, clock },
    );
    const told: string[] = [];
    const healthOf = () => view.current().find(({ instance }) => instance === 'late')?.healthAddress;
    view.onChange(() => told.push(healthOf() ?? ''));
    hears = false;
    health = 'after';
    await lease.refresh();
    expect(healthOf()).toBe('before');
    await Promise.all([view.lookAgain(), view.lookAgain()]);
    expect(healthOf()).toBe('after');
    expect(told).toEqual(['after']);
    view.stop();
    await lease.release();
  });
});
