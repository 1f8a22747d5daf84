import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { defineErrors } from '../errors/backtalk-error.js';
import { Metrics } from '../telemetry/metrics.js';
import { ConsumerRig } from '../testing/consumer-rig.js';
import { until } from '../testing/until.js';
import { deadLetters } from './dead-letters.js';

const errors = defineErrors('test', {
  crashed: { code: 'crashed', retry: 'later', message: () => 'The handler crashed.' },
  away: { code: 'away', retry: 'later', status: 503, message: () => 'What the handler needs is away.' },
  poison: { code: 'poison', retry: 'never', message: () => 'This will never do.' },
  broken: { code: 'broken', retry: 'stop', message: () => 'The service cannot go on.' },
});

let ground: ConsumerRig;

beforeAll(async () => {
  ground = await ConsumerRig.start();
});

afterAll(() => ground.nats.stop());

describe('consuming facts', () => {
  it('handles every fact once while nothing fails, and settles it', async () => {
    const place = ground.place();
    const sessions = await ground.publish(place, 50);
    const seen: string[] = [];
    const metrics = new Metrics('test');
    const consumer = ground.consumer(
      place,
      async ({ message }) => {
        seen.push(message.session);
      },
      { metrics },
    );
    await consumer.start();
    await until(async () => (await consumer.position('sessionEnded')).unsettled === 0 && seen.length === 50);
    await consumer.stop();
    expect(seen.toSorted()).toEqual(sessions.toSorted());
    expect(await metrics.registry.metrics()).toContain(
      'backtalk_test_facts_handled_total{fact="sessionEnded",outcome="handled"} 50',
    );
  });

  it('delivers a fact again when its handler fails', async () => {
    const place = ground.place();
    await ground.publish(place, 1);
    const deliveries: boolean[] = [];
    const consumer = ground.consumer(place, async (_fact, { redelivered }) => {
      deliveries.push(redelivered);
      if (deliveries.length < 3) throw errors.crashed();
    });
    await consumer.start();
    await until(() => deliveries.length === 3);
    await until(async () => (await consumer.position('sessionEnded')).unsettled === 0);
    await consumer.stop();
    expect(deliveries).toEqual([false, true, true]);
    expect(await deadLetters(await ground.nats.connect('cli')).count()).toBe(0);
  });

  it('keeps a fact in flight, and counts no try, while something it needs is away', async () => {
    const place = ground.place();
    await ground.publish(place, 1);
    let calls = 0;
    const seen: number[] = [];
    const consumer = ground.consumer(
      place,
      async (_fact, { deliveries }) => {
        calls += 1;
        if (calls < 250) throw errors.away();
        seen.push(deliveries);
      },
      // Less than the handler is tried for, and more than a machine that is busy holds a process up.
      { maxDeliver: 2, ackWaitMs: 6_000 },
    );
    await consumer.start();
    await until(() => seen.length === 1);
    await consumer.stop();
    expect(seen).toEqual([1]);
  });

  it('makes poison a dead letter with its reason, goes on, and handles it when it is replayed', async () => {
    const place = ground.place();
    const [bad = ''] = await ground.publish(place, 1);
    const others = await ground.publish(place, 10);
    const seen: string[] = [];
    let cured = false;
    const consumer = ground.consumer(place, async ({ message }) => {
      if (message.session === bad && !cured) throw errors.poison();
      seen.push(message.session);
    });
    await consumer.start();
    const letters = deadLetters(await ground.nats.connect('cli'));
    const [letter] = await until(async () => {
      const found = await letters.list({ service: 'collector' });
      return found.length === 1 && found;
    });
    await until(() => seen.length === others.length);
    expect(letter).toMatchObject({ reason: 'poison', service: 'collector', fact: { stream: 'TURNS' } });
    expect(letter?.fact.subject).toContain(bad);
    cured = true;
    await letters.replay(letter?.sequence ?? 0);
    await until(() => seen.includes(bad));
    expect(await letters.count()).toBe(0);
    await consumer.stop();
  });

  it('gives a fact up after the tries it has, not before', async () => {
    const place = ground.place();
    await ground.publish(place, 1);
    let tries = 0;
    const consumer = ground.consumer(
      place,
      () => {
        tries += 1;
        return Promise.reject(errors.crashed());
      },
      { maxDeliver: 3 },
    );
    await consumer.start();
    const letters = deadLetters(await ground.nats.connect('cli'));
    const [letter] = await until(async () => {
      const found = await letters.list();
      return found.length === 1 && found;
    });
    expect(tries).toBe(3);
    expect(letter).toMatchObject({ reason: 'crashed', deliveries: 3 });
    await letters.discard(letter?.sequence ?? 0);
    await consumer.stop();
  });

  it('a consumer has not settled a fact that the broker does not count as pending yet', async () => {
    const place = ground.place();
    const consumer = ground.consumer(place, () => Promise.resolve());
    await consumer.start();
    await ground.publish(place, 1);
    const end = Number.MAX_SAFE_INTEGER;
    await until(() => consumer.hasSettled('sessionEnded', end));
    await consumer.stop();
    const { jsm } = ground.collector;
    const before = await jsm.consumers.info('TURNS', `collector_sessionEnded_${place.suffix}`);
    await ground.publish(place, 1);
    const position = vi.spyOn(jsm.consumers, 'info').mockResolvedValue(before);
    const settled = await consumer.hasSettled('sessionEnded', end).finally(() => position.mockRestore());
    expect({ pending: before.num_pending, settled }).toEqual({ pending: 0, settled: false });
    expect(await consumer.hasSettled('sessionEnded', before.ack_floor.stream_seq)).toBe(true);
  });

  it('a fact that many processes were stopped with has all its tries when it fails for the first time', async () => {
    const place = ground.place();
    await ground.publish(place, 1);
    const first = ground.consumer(place, () => Promise.resolve());
    await first.start();
    await until(async () => (await first.position('sessionEnded')).settledSequence > 0);
    await first.stop();
    await ground.publish(place, 1);
    const admin = await ground.nats.connect('admin');
    // As processes do that are killed: it is taken, and comes back.
    const taken = await admin.js.consumers.get('TURNS', `collector_sessionEnded_${place.suffix}`);
    for (let death = 1; death <= 12; death += 1) (await taken.next({ expires: 5_000 }))?.nak();
    let calls = 0;
    const handler = async () => {
      calls += 1;
      if (calls < 3) throw errors.crashed();
    };
    const consumer = ground.consumer(place, handler, { maxDeliver: 3 });
    await consumer.start();
    await until(async () => (await consumer.position('sessionEnded')).unsettled === 0);
    await consumer.stop();
    expect(calls).toBe(3);
    const letters = await deadLetters(admin).list();
    expect(letters.filter(({ fact }) => fact.subject.includes(place.user))).toEqual([]);
  });

  it('lists all dead letters that there are', async () => {
    const admin = await ground.nats.connect('admin');
    const subject = 'backtalk.dead.listed.any';
    const one = () => admin.js.publish(subject, new Uint8Array());
    await Promise.all(Array.from({ length: 1_001 }, one));
    expect(await deadLetters(admin).list({ service: 'listed' })).toHaveLength(1_001);
    await admin.jsm.streams.purge('DEAD', { filter: subject });
  });

  it('makes bytes that are no message a dead letter', async () => {
    const place = ground.place();
    const admin = await ground.nats.connect('admin');
    await admin.js.publish(`backtalk.session.ended.acme.${place.user}.bad`, new Uint8Array([255, 255, 255]));
    const consumer = ground.consumer(place, () => Promise.resolve());
    await consumer.start();
    const letters = deadLetters(admin);
    const [letter] = await until(async () => {
      const found = await letters.list();
      return found.length === 1 && found;
    });
    expect(letter).toMatchObject({ reason: 'fact_undecodable' });
    await letters.discard(letter?.sequence ?? 0);
    await consumer.stop();
  });

  it('ends the service, and gives the fact back, when an error says stop', async () => {
    const place = ground.place();
    await ground.publish(place, 1);
    const fatal: string[] = [];
    const consumer = ground.consumer(place, () => Promise.reject(errors.broken()), {
      onFatal: (error) => fatal.push(error.code),
    });
    await consumer.start();
    await until(() => fatal.length > 0);
    await consumer.stop();
    expect(fatal[0]).toBe('broken');
  });

  it('a fact that was given back again and again is not taken for poison when it fails for the first time', async () => {
    const place = ground.place();
    await ground.publish(place, 1);
    let deliveries = 0;
    const consumer = ground.consumer(place, async (_fact, { hold }) => {
      deliveries += 1;
      if (deliveries <= 10) hold().release();
      else if (deliveries === 11) throw errors.crashed();
    });
    await consumer.start();
    await until(() => deliveries === 12);
    await until(async () => (await consumer.position('sessionEnded')).unsettled === 0);
    await consumer.stop();
    const letters = await deadLetters(await ground.nats.connect('cli')).list();
    expect(letters.filter(({ fact }) => fact.subject.includes(place.user))).toEqual([]);
  });

  it('a consumer has no more handlers at work than it may, and no fact goes to two of them however long they take', async () => {
    const place = ground.place();
    await ground.publish(place, 12);
    const running = new Set<string>();
    const seen: string[] = [];
    let most = 0;
    let release: () => void = () => undefined;
    const gate = new Promise<void>((resolve) => {
      release = resolve;
    });
    const consumer = ground.consumer(
      place,
      async ({ message }) => {
        seen.push(message.session);
        running.add(message.session);
        most = Math.max(most, running.size);
        await gate;
        running.delete(message.session);
      },
      { concurrency: 3, ackWaitMs: 300 },
    );
    await consumer.start();
    await until(() => running.size === 3);
    await ground.signsOfLife(place, 3 * 3 * 4);
    expect(seen).toHaveLength(3);
    release();
    await until(async () => (await consumer.position('sessionEnded')).unsettled === 0 && seen.length === 12);
    await consumer.stop();
    expect(most).toBe(3);
    expect(new Set(seen).size).toBe(12);
  });
});
