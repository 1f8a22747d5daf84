import { SessionEnded } from '@backtalk/proto/facts';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Broker } from '../broker/index.js';
import { defineErrors } from '../errors/index.js';
import { newId } from '../identity/index.js';
import { Metrics } from '../telemetry/index.js';
import { silentLogger, startNats, until, type TestNats } from '../testing/index.js';
import { consumeFacts, type ConsumeOptions } from './consumer.js';
import { deadLetters } from './dead-letters.js';
import type { Held } from './delivery.js';
import { FactPublisher } from './publisher.js';
import type { FactName } from './catalogue.js';

const errors = defineErrors('test', {
  crashed: { code: 'crashed', retry: 'later', message: () => 'The handler crashed.' },
  away: { code: 'away', retry: 'later', status: 503, message: () => 'What the handler needs is away.' },
  poison: { code: 'poison', retry: 'never', message: () => 'This will never do.' },
  broken: { code: 'broken', retry: 'stop', message: () => 'The service cannot go on.' },
});

let nats: TestNats;
let gateway: Broker;
let collector: Broker;

beforeAll(async () => {
  // A suffix for each test: every test has a durable consumer of its own.
  nats = await startNats({ durableSuffixes: Array.from({ length: 30 }, (_, i) => `t${i}`) });
  gateway = await nats.connect('gateway');
  collector = await nats.connect('collector');
});

afterAll(() => nats.stop());

let tests = 0;
/** A user of one test's own, whose facts nobody else sees. */
function ground() {
  tests += 1;
  return { user: newId(), suffix: `t${tests}` };
}

function options<F extends FactName>(
  suffix: string,
  given: Pick<ConsumeOptions<F>, 'facts' | 'handlers' | 'filter'> & Partial<ConsumeOptions<F>>,
): ConsumeOptions<F> {
  return {
    broker: collector,
    service: 'collector',
    durableSuffix: suffix,
    concurrency: 4,
    ackWaitMs: 1_000,
    logger: silentLogger,
    metrics: new Metrics('test'),
    backOff: { firstMs: 10, mostMs: 50 },
    ...given,
  };
}

/** Resolves when so many signs of life were sent: each fact in hand sends three in an ack wait. */
async function signsOfLife(suffix: string, count: number): Promise<void> {
  const admin = await nats.connect('admin');
  const signs = admin.nc.subscribe(`$JS.ACK.TURNS.collector_sessionEnded_${suffix}.>`, { max: count });
  for await (const sign of signs) expect(sign.string()).toBe('+WPI');
}

function ended(user: string, session = newId()): SessionEnded {
  return SessionEnded.fromPartial({ session, tenant: 'acme', user });
}

async function publishMany(user: string, count: number): Promise<string[]> {
  const publisher = new FactPublisher(gateway);
  const facts = Array.from({ length: count }, () => ended(user));
  for (const fact of facts) await publisher.publish('sessionEnded', fact);
  return facts.map((fact) => fact.session);
}

describe('consuming facts', () => {
  it('handles every fact once while nothing fails, and settles it', async () => {
    const { user, suffix } = ground();
    const sessions = await publishMany(user, 50);
    const seen: string[] = [];
    const metrics = new Metrics('test');
    const consumer = consumeFacts(
      options(suffix, {
        facts: ['sessionEnded'],
        filter: { sessionEnded: { user } },
        metrics,
        handlers: {
          sessionEnded: async ({ message }) => {
            seen.push(message.session);
          },
        },
      }),
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
    const { user, suffix } = ground();
    await publishMany(user, 1);
    const deliveries: boolean[] = [];
    const consumer = consumeFacts(
      options(suffix, {
        facts: ['sessionEnded'],
        filter: { sessionEnded: { user } },
        handlers: {
          sessionEnded: async (_fact, { redelivered }) => {
            deliveries.push(redelivered);
            if (deliveries.length < 3) throw errors.crashed();
          },
        },
      }),
    );
    await consumer.start();
    await until(() => deliveries.length === 3);
    await until(async () => (await consumer.position('sessionEnded')).unsettled === 0);
    await consumer.stop();
    expect(deliveries).toEqual([false, true, true]);
    expect(await deadLetters(await nats.connect('cli')).count()).toBe(0);
  });

  it('keeps a fact in hand, and counts no try, while something it needs is away', async () => {
    const { user, suffix } = ground();
    await publishMany(user, 1);
    let calls = 0;
    const seen: number[] = [];
    const consumer = consumeFacts(
      options(suffix, {
        facts: ['sessionEnded'],
        filter: { sessionEnded: { user } },
        maxDeliver: 2,
        ackWaitMs: 200,
        handlers: {
          sessionEnded: async (_fact, { deliveries }) => {
            calls += 1;
            if (calls < 20) throw errors.away();
            seen.push(deliveries);
          },
        },
      }),
    );
    await consumer.start();
    await until(() => seen.length === 1);
    await consumer.stop();
    expect(seen).toEqual([1]);
  });

  it('makes poison a dead letter with its reason, goes on, and handles it when it is replayed', async () => {
    const { user, suffix } = ground();
    const [bad = ''] = await publishMany(user, 1);
    const others = await publishMany(user, 10);
    const seen: string[] = [];
    let cured = false;
    const consumer = consumeFacts(
      options(suffix, {
        facts: ['sessionEnded'],
        filter: { sessionEnded: { user } },
        handlers: {
          sessionEnded: async ({ message }) => {
            if (message.session === bad && !cured) throw errors.poison();
            seen.push(message.session);
          },
        },
      }),
    );
    await consumer.start();
    const letters = deadLetters(await nats.connect('cli'));
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
    const { user, suffix } = ground();
    await publishMany(user, 1);
    let tries = 0;
    const consumer = consumeFacts(
      options(suffix, {
        facts: ['sessionEnded'],
        filter: { sessionEnded: { user } },
        maxDeliver: 3,
        handlers: {
          sessionEnded: () => {
            tries += 1;
            return Promise.reject(errors.crashed());
          },
        },
      }),
    );
    await consumer.start();
    const letters = deadLetters(await nats.connect('cli'));
    const [letter] = await until(async () => {
      const found = await letters.list();
      return found.length === 1 && found;
    });
    expect(tries).toBe(3);
    expect(letter).toMatchObject({ reason: 'crashed', deliveries: 3 });
    await letters.discard(letter?.sequence ?? 0);
    await consumer.stop();
  });

  it('makes bytes that are no message a dead letter', async () => {
    const { user, suffix } = ground();
    const admin = await nats.connect('admin');
    await admin.js.publish(`backtalk.session.ended.acme.${user}.${newId()}`, new Uint8Array([255, 255, 255]));
    const consumer = consumeFacts(
      options(suffix, {
        facts: ['sessionEnded'],
        filter: { sessionEnded: { user } },
        handlers: { sessionEnded: () => Promise.resolve() },
      }),
    );
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
    const { user, suffix } = ground();
    await publishMany(user, 1);
    const fatal: string[] = [];
    const consumer = consumeFacts(
      options(suffix, {
        facts: ['sessionEnded'],
        filter: { sessionEnded: { user } },
        handlers: { sessionEnded: () => Promise.reject(errors.broken()) },
        onFatal: (error) => fatal.push(error.code),
      }),
    );
    await consumer.start();
    await until(() => fatal.length > 0);
    await consumer.stop();
    expect(fatal[0]).toBe('broken');
  });

  it('has no more handlers at work than it may, and no fact goes to two of them however long they take', async () => {
    const { user, suffix } = ground();
    await publishMany(user, 12);
    const running = new Set<string>();
    const seen: string[] = [];
    let most = 0;
    let release: () => void = () => undefined;
    const gate = new Promise<void>((resolve) => {
      release = resolve;
    });
    const consumer = consumeFacts(
      options(suffix, {
        facts: ['sessionEnded'],
        filter: { sessionEnded: { user } },
        concurrency: 3,
        ackWaitMs: 300,
        handlers: {
          sessionEnded: async ({ message }) => {
            seen.push(message.session);
            running.add(message.session);
            most = Math.max(most, running.size);
            await gate;
            running.delete(message.session);
          },
        },
      }),
    );
    await consumer.start();
    await until(() => running.size === 3);
    await signsOfLife(suffix, 3 * 3 * 4);
    expect(seen).toHaveLength(3);
    release();
    await until(async () => (await consumer.position('sessionEnded')).unsettled === 0 && seen.length === 12);
    await consumer.stop();
    expect(most).toBe(3);
    expect(new Set(seen).size).toBe(12);
  });
});

describe('holding', () => {
  it('keeps facts un-acked beyond the ack wait, hands none to a second handler, and settles them when told', async () => {
    const { user, suffix } = ground();
    const sessions = await publishMany(user, 5);
    const held = new Map<string, Held>();
    let calls = 0;
    const consumer = consumeFacts(
      options(suffix, {
        facts: ['sessionEnded'],
        filter: { sessionEnded: { user } },
        ackWaitMs: 300,
        concurrency: 1,
        maxHeld: 10,
        handlers: {
          sessionEnded: async ({ message }, delivery) => {
            calls += 1;
            held.set(message.session, delivery.hold());
          },
        },
      }),
    );
    await consumer.start();
    await until(() => held.size === 5);
    await signsOfLife(suffix, 5 * 3 * 3);
    expect(calls).toBe(5);
    expect((await consumer.position('sessionEnded')).unsettled).toBe(5);
    for (const session of sessions) await held.get(session)?.ack();
    expect((await consumer.position('sessionEnded')).unsettled).toBe(0);
    await consumer.stop();
  });

  it('survives a restart of the broker, and gives back on stop what it still holds', async () => {
    const { user, suffix } = ground();
    await publishMany(user, 3);
    const held: Held[] = [];
    const made = () =>
      consumeFacts(
        options(suffix, {
          facts: ['sessionEnded'],
          filter: { sessionEnded: { user } },
          ackWaitMs: 500,
          maxHeld: 10,
          handlers: {
            sessionEnded: async (_fact, delivery) => {
              held.push(delivery.hold());
            },
          },
        }),
      );
    const first = made();
    await first.start();
    await until(() => held.length === 3);
    await nats.restart();
    await until(() => collector.status() === 'up');
    await until(() => held[0]?.ack().then(() => true), { what: 'settling a held fact after the restart' });
    expect(held).toHaveLength(3);
    await first.stop();
    const second = made();
    await second.start();
    await until(() => held.length === 5);
    await expect(held[1]?.ack()).rejects.toMatchObject({ code: 'facts_stopped' });
    for (const one of held.slice(3)) await one.ack();
    expect((await second.position('sessionEnded')).unsettled).toBe(0);
    await second.stop();
  });
});

describe('a broker that goes away', () => {
  it('loses no fact, though it is killed again and again while facts are published and handled', async () => {
    const { user, suffix } = ground();
    const seen = new Map<string, number>();
    const consumer = consumeFacts(
      options(suffix, {
        facts: ['sessionEnded', 'personErased'],
        filter: { sessionEnded: { user }, personErased: { user } },
        handlers: {
          sessionEnded: async ({ message }) => {
            seen.set(message.session, (seen.get(message.session) ?? 0) + 1);
          },
          personErased: () => Promise.resolve(),
        },
      }),
    );
    await consumer.start();
    const publisher = new FactPublisher(gateway, { timeoutMs: 500 });
    const stored: string[] = [];
    let publishing = true;
    const publish = async () => {
      while (publishing) {
        const fact = ended(user);
        await until(() => publisher.publish('sessionEnded', fact), { what: 'storing', timeoutMs: 15_000 });
        stored.push(fact.session);
      }
    };
    const work = publish();
    for (let round = 1; round <= 3; round += 1) {
      await until(() => stored.length >= round * 40, { what: 'publishing' });
      await nats.restart();
    }
    await until(() => stored.length >= 160);
    publishing = false;
    await work;
    await until(() => seen.size === stored.length, { what: 'handling of all stored facts', timeoutMs: 15_000 });
    await consumer.stop();
    expect([...seen.keys()].toSorted()).toEqual(stored.toSorted());
  });

  it('makes a consumer again that was deleted', async () => {
    const { user, suffix } = ground();
    let seen = 0;
    const consumer = consumeFacts(
      options(suffix, {
        facts: ['sessionEnded'],
        filter: { sessionEnded: { user } },
        handlers: {
          sessionEnded: async () => {
            seen += 1;
          },
        },
      }),
    );
    await consumer.start();
    await publishMany(user, 1);
    await until(() => seen === 1);
    const admin = await nats.connect('admin');
    await admin.jsm.consumers.delete('TURNS', `collector_sessionEnded_${suffix}`);
    await publishMany(user, 1);
    // A new consumer begins at the beginning: handlers must be idempotent.
    await until(() => seen >= 3);
    await consumer.stop();
  });
});

