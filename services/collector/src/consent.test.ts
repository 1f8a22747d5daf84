import { FactPublisher, FactReader, type Broker, type Service } from '@backtalk/kit';
import {
  startNats,
  startValkey,
  TemporaryDirectory,
  until,
  type TestNats,
  type TestValkey,
} from '@backtalk/kit/testing';
import type { Consent, TurnOpened } from '@backtalk/proto/facts';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { createCollector } from './service.js';
import { completed, configFor, opened, tenant, turnPattern, type Said } from './testing/turns.js';

describe('consent', () => {
  let nats: TestNats;
  let valkey: TestValkey;
  let broker: Broker;
  let gateway: FactPublisher;
  let reader: FactReader;
  let collector: Service;
  const blobs = new TemporaryDirectory('blobs');
  let user = '';
  let users = 0;
  let indexKeepMs = 3_600_000;

  beforeAll(async () => {
    [nats, valkey] = await Promise.all([startNats(), startValkey()]);
    broker = await nats.connect('admin');
    gateway = new FactPublisher(await nats.connect('gateway'));
    reader = new FactReader(broker);
  });
  afterAll(async () => {
    await Promise.all([nats.stop(), valkey.stop()]);
    blobs.remove();
  });
  beforeEach(async () => {
    users += 1;
    user = `user${String(users)}`;
    indexKeepMs = 3_600_000;
    await begin();
  });
  afterEach(() => collector.stop());

  async function begin() {
    collector = createCollector({ ...configFor(nats, valkey, blobs), sessionIdleMs: indexKeepMs, indexKeepMs });
    await collector.start();
  }

  const saidIn = (count: number) =>
    Array.from({ length: count }, (_, at) => ({ role: at % 2 === 0 ? 'user' : 'assistant', content: `words ${at}` }));
  const nameOf = (number: number) => turnPattern(`${user}n${number}`);

  /** The turns of one conversation: each holds the answers of all before it. */
  function request(number: number, said: Partial<Said> = {}): TurnOpened {
    const answerKeys = Array.from({ length: number - 1 }, (_, at) => `k${at + 1}`);
    return opened({ turn: nameOf(number), user, messages: saidIn(2 * number - 1), answerKeys, ...said });
  }

  async function say(number: number, said: Partial<Said> = {}): Promise<void> {
    await gateway.publish('turnOpened', request(number, said));
    await gateway.publish('turnCompleted', completed(nameOf(number), user, `k${number}`, said.session));
  }

  async function untilTaken(): Promise<void> {
    const names = ['collector_turnOpened', 'collector_turnCompleted', 'collector_turnWithheld'];
    await until(
      async () => {
        const consumers = await Promise.all(names.map((name) => broker.jsm.consumers.info('TURNS', name)));
        return consumers.every((consumer) => consumer.num_pending === 0 && consumer.num_ack_pending === 0);
      },
      { what: 'all facts are taken' },
    );
  }

  async function consentTo(number: number): Promise<Consent | undefined> {
    const turn = nameOf(number);
    const { message } = await until(() => reader.last('turnContinued', { tenant, user, turn }), { what: turn });
    return message.consent;
  }

  const withheld = async (number: number) =>
    (await reader.last('turnWithheld', { tenant, user, turn: nameOf(number) }))?.message.source;

  it('stands in the headers of the facts', async () => {
    const said = async (consent: Partial<Said>, number: number) => {
      await gateway.publish('turnOpened', request(number, consent));
      return (await reader.last('turnOpened', { tenant, user, turn: nameOf(number) }))?.headers.train;
    };
    expect(await said({ train: false }, 1)).toBe('no');
    expect(await said({ train: true }, 2)).toBe('yes');
    expect(await said({}, 3)).toBe('default');
  });

  it.each([
    ['Valkey was emptied', async () => valkey.flush()],
    [
      'Valkey was emptied and the index would have forgotten it',
      async () => {
        await collector.stop();
        indexKeepMs = 1_000;
        const first = await reader.last('turnCompleted', { tenant, user, turn: nameOf(1) });
        // The broker's clock decides: what was said before is older than the index reaches.
        await until(async () => {
          const { ts } = (await broker.jsm.streams.info('TURNS')) as { ts?: string };
          return Date.parse(ts ?? '') - (first?.timeMs ?? 0) > 2 * indexKeepMs;
        });
        await valkey.flush();
        await begin();
      },
    ],
  ])('a "no" holds for what follows it, though %s', async (_what, forget) => {
    await say(1, { train: false });
    await untilTaken();
    await forget();
    // Gateways have forgotten it, too: they write down that nothing was said.
    await say(2);
    await untilTaken();
    await say(3);
    expect(await consentTo(2)).toMatchObject({ train: false });
    await untilTaken();
    await valkey.flush();
    await say(4);
    expect(await consentTo(3)).toMatchObject({ train: false });
    expect([await withheld(2), await withheld(3)]).not.toContain(undefined);
  });

  it('a "no" ends where the person says yes', async () => {
    await say(1, { train: false });
    await untilTaken();
    await say(2, { train: true });
    await untilTaken();
    await say(3);
    expect(await consentTo(1)).toMatchObject({ train: false });
    expect(await consentTo(2)).toMatchObject({ train: true });
    await untilTaken();
    await valkey.flush();
    await say(4);
    expect(await consentTo(3)).toMatchObject({ train: true });
  });

  it('a "no" holds in a declared session, though a later request shows nothing of what was said before', async () => {
    const session = `session_${user}`;
    await say(1, { train: false, session, declared: 'mine' });
    await untilTaken();
    await valkey.flush();
    const alone = { session, declared: 'mine', messages: saidIn(1), answerKeys: [] };
    await say(2, alone);
    await untilTaken();
    expect(await withheld(2)).toBe('session');
    await say(3, { session: `${session}b`, declared: 'other', messages: saidIn(1), answerKeys: [] });
    await untilTaken();
    expect(await withheld(3)).toBeUndefined();
  });

  it('answers that nobody knows keep a request from learning where the person said no somewhere, and only there', async () => {
    const elsewhere = { messages: saidIn(3), answerKeys: ['elsewhere'] };
    await say(1, elsewhere);
    await untilTaken();
    expect(await withheld(1)).toBeUndefined();
    await say(2, { train: false, messages: saidIn(1), answerKeys: [] });
    await untilTaken();
    await say(3, elsewhere);
    await say(4, { messages: saidIn(1), answerKeys: [] });
    await untilTaken();
    expect([await withheld(3), await withheld(4)]).toEqual(['unknown', undefined]);
    // What could not be established is no refusal by itself.
    expect(await reader.last('turnWithheld', { tenant, user, source: 'request', turn: nameOf(3) })).toBeUndefined();
  });

  it.each([
    ['history that is shown again', { messages: saidIn(5), answerKeys: ['k1', 'k2'] }, 'unknown'],
    ['declared session', { messages: saidIn(1), answerKeys: [], declared: 'mine' }, 'session'],
  ])('a "no" holds for its %s after the log and Valkey have let its turns go', async (_what, later, source) => {
    const session = `session_${user}`;
    await say(1, { train: false, session, declared: 'mine' });
    await untilTaken();
    await broker.jsm.streams.purge('TURNS');
    await valkey.flush();
    await say(3, { ...later, session: 'declared' in later ? session : 'another' });
    await untilTaken();
    expect(await withheld(3)).toBe(source);
    // Others, and this person's new conversations, are learned from as ever.
    await say(4, { messages: saidIn(1), answerKeys: [] });
    user = `${user}other`;
    await say(3, { messages: saidIn(5), answerKeys: ['k1', 'k2'] });
    await untilTaken();
    expect(await withheld(3)).toBeUndefined();
    user = user.replace('other', '');
    expect(await withheld(4)).toBeUndefined();
  });

  it('a turn whose request is not in the log yet is not learned from', async () => {
    await gateway.publish('turnCompleted', completed(nameOf(1), user, 'k1'));
    await untilTaken();
    await gateway.publish('turnOpened', request(2));
    expect(await consentTo(1)).toEqual({ train: false, source: 'unknown' });
  });

  it('reads what was said from facts without the header, as earlier releases stored them', async () => {
    await collector.stop();
    await nats.stop();
    nats = await startNats();
    broker = await nats.connect('admin');
    gateway = new FactPublisher(await nats.connect('gateway'));
    reader = new FactReader(broker);
    await valkey.flush();
    const refusing = user;
    const agreeing = `${user}b`;
    for (const train of [false, true]) {
      user = train ? agreeing : refusing;
      await gateway.publish('turnOpened', request(1, { train }));
      const last_by_subj = `backtalk.turn.opened.${tenant}.${user}.${nameOf(1)}`;
      const stored = await broker.jsm.streams.getMessage('TURNS', { last_by_subj });
      await broker.jsm.streams.deleteMessage('TURNS', stored.seq);
      stored.header.delete('Backtalk-Train');
      await broker.js.publish(last_by_subj, stored.data, { headers: stored.header });
      await gateway.publish('turnCompleted', completed(nameOf(1), user, 'k1'));
    }
    await begin();
    await untilTaken();
    // As if it had been taken by a collector that did not write such notes yet.
    const note = await reader.last('turnWithheld', { tenant, user: refusing });
    await broker.jsm.streams.deleteMessage('TURNS', note?.sequence ?? 0);
    await valkey.flush();
    await say(2);
    expect(await consentTo(1)).toMatchObject({ train: true });
    user = refusing;
    await say(2);
    await untilTaken();
    expect([await withheld(1), await withheld(2)]).toEqual(['request', 'session']);
  });
});
