import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { ConsumerRig } from '../testing/consumer-rig.js';
import { until } from '../testing/until.js';
import { deadLetters } from './dead-letters.js';
import type { Held } from './delivery.js';

let ground: ConsumerRig;

beforeAll(async () => {
  ground = await ConsumerRig.start();
});

afterAll(() => ground.nats.stop());

describe('holding', () => {
  it('keeps facts un-acked beyond the ack wait, hands none to a second handler, and settles them when told', async () => {
    const place = ground.place();
    const sessions = await ground.publish(place, 5);
    const held = new Map<string, Held>();
    let calls = 0;
    const consumer = ground.consumer(
      place,
      async ({ message }, delivery) => {
        calls += 1;
        held.set(message.session, delivery.hold());
      },
      { ackWaitMs: 300, concurrency: 1, maxHeld: 10 },
    );
    await consumer.start();
    await until(() => held.size === 5);
    await ground.signsOfLife(place, 5 * 3 * 3);
    expect(calls).toBe(5);
    expect((await consumer.position('sessionEnded')).unsettled).toBe(5);
    for (const session of sessions)
      await until(() =>
        held
          .get(session)
          ?.ack()
          .then(() => true),
      );
    expect((await consumer.position('sessionEnded')).unsettled).toBe(0);
    await consumer.stop();
  });

  it('survives a restart of the broker, and gives back on stop what it still holds', async () => {
    const place = ground.place();
    await ground.publish(place, 3);
    const held: Held[] = [];
    const made = () =>
      ground.consumer(
        place,
        async (_fact, delivery) => {
          held.push(delivery.hold());
        },
        { ackWaitMs: 500, maxHeld: 10 },
      );
    const first = made();
    await first.start();
    await until(() => held.length === 3);
    await ground.nats.restart();
    await until(() => ground.collector.status() === 'up');
    await until(() => held[0]?.ack().then(() => true), { what: 'settling a held fact after the restart' });
    expect(held).toHaveLength(3);
    await first.stop();
    const second = made();
    await second.start();
    await until(() => held.length === 5);
    await expect(held[1]?.ack()).rejects.toMatchObject({ code: 'facts_stopped' });
    for (const one of held.slice(3)) await until(() => one.ack().then(() => true));
    expect((await second.position('sessionEnded')).unsettled).toBe(0);
    await second.stop();
  });

  it.each([
    ['held', 10],
    ['settled at once', 0],
  ])(
    'a fact that ends the process each time is buried after a bounded number of ends; the others are %s',
    async (_, maxHeld) => {
      const place = ground.place();
      const sessions = await ground.publish(place, 4);
      const poison = sessions[2];
      // One connection: this is asked again and again.
      const buried = deadLetters(await ground.nats.connect('cli'));
      const letters = async () =>
        (await buried.list({ service: 'collector' })).filter(({ fact }) => fact.subject.endsWith(`.${String(poison)}`));
      const handled = new Set<string>();
      let ends = 0;
      for (; ends < 12 && (await letters()).length === 0; ends += 1) {
        // A process that ends is a connection that is gone: nothing is given back.
        const process = await ground.nats.connect('collector');
        const held = new Set<string>();
        let ended = false;
        const consumer = ground.consumer(
          place,
          async ({ message }, delivery) => {
            if (message.session === poison) {
              ended = true;
              await process.close();
              await new Promise(() => undefined);
            }
            if (maxHeld > 0) delivery.hold();
            held.add(message.session);
            handled.add(message.session);
          },
          { broker: process, ackWaitMs: 300, concurrency: 1, maxHeld },
        );
        // The end may come before the start has ended, which then never does.
        const started = consumer.start();
        const isThrough = () => (maxHeld > 0 ? held : handled).size === 3;
        await until(async () => ended || (isThrough() && (await letters()).length === 1), {
          what: 'The end of the process, or the burial',
        });
        if (ended) continue;
        await started;
        await consumer.stop();
      }
      expect(await letters()).toMatchObject([{ reason: 'delivered_too_often' }]);
      expect(ends).toBeLessThanOrEqual(9);
    },
  );
});
