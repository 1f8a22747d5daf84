import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { ConsumerRig, endedSession } from '../testing/consumer-rig.js';
import { until } from '../testing/until.js';
import { FactPublisher } from './publisher.js';

let ground: ConsumerRig;

beforeAll(async () => {
  ground = await ConsumerRig.start();
});

afterAll(() => ground.nats.stop());

describe('a broker that goes away', () => {
  it('loses no fact, though it is killed again and again while facts are published and handled', async () => {
    const place = ground.place();
    const seen = new Map<string, number>();
    const consumer = ground.consumer(place, async ({ message }) => {
      seen.set(message.session, (seen.get(message.session) ?? 0) + 1);
    });
    await consumer.start();
    const publisher = new FactPublisher(ground.gateway, { timeoutMs: 500 });
    const stored: string[] = [];
    let publishing = true;
    const publish = async () => {
      while (publishing) {
        const fact = endedSession(place.user);
        await until(() => publisher.publish('sessionEnded', fact), { what: 'storing', timeoutMs: 60_000 });
        stored.push(fact.session);
      }
    };
    const work = publish();
    for (let round = 1; round <= 3; round += 1) {
      await until(() => stored.length >= round * 40, { what: 'publishing', timeoutMs: 60_000 });
      await ground.nats.restart();
    }
    await until(() => stored.length >= 160, { what: 'publishing', timeoutMs: 60_000 });
    publishing = false;
    await work;
    await until(() => seen.size === stored.length, { what: 'handling of all stored facts', timeoutMs: 60_000 });
    await consumer.stop();
    expect([...seen.keys()].toSorted()).toEqual(stored.toSorted());
  });

  it('asks for no more after a lost connection than there is room for: what it asked for before is not given, too', async () => {
    const place = ground.place();
    let running = 0;
    let release: () => void = () => undefined;
    const gate = new Promise<void>((resolve) => {
      release = resolve;
    });
    const consumer = ground.consumer(
      place,
      async () => {
        running += 1;
        await gate;
      },
      { concurrency: 1, ackWaitMs: 600 },
    );
    await consumer.start();
    const requests = await ground.countRequests(place);
    for (let round = 1; round <= 3; round += 1) {
      await ground.collector.nc.reconnect();
      await until(() => requests() >= round, { what: 'another request' });
    }
    await ground.publish(place, 5);
    await until(() => running > 0);
    await ground.signsOfLife(place, 4);
    expect(running).toBe(1);
    release();
    await until(async () => (await consumer.position('sessionEnded')).unsettled === 0);
    await consumer.stop();
  });

  it('makes a consumer again that was deleted', async () => {
    const place = ground.place();
    let seen = 0;
    const consumer = ground.consumer(place, async () => {
      seen += 1;
    });
    await consumer.start();
    await ground.publish(place, 1);
    await until(() => seen === 1);
    const admin = await ground.nats.connect('admin');
    await admin.jsm.consumers.delete('TURNS', `collector_sessionEnded_${place.suffix}`);
    await ground.publish(place, 1);
    // A new consumer begins at the beginning: handlers must be idempotent.
    await until(() => seen >= 3);
    await consumer.stop();
  });
});
