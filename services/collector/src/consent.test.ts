import type { Consent, TurnOpened } from '@backtalk/proto/facts';
import { until } from '@backtalk/kit/testing';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { CollectorRig } from './testing/collector-rig.js';
import { completed, opened, tenant, turnPattern, type Said } from './testing/turns.js';

describe('consent', () => {
  let rig: CollectorRig;
  let user = '';
  let indexKeepMs = 3_600_000;

  beforeAll(async () => {
    rig = await CollectorRig.start();
  });
  afterAll(() => rig.stop());
  beforeEach(async () => {
    user = rig.nextUser();
    indexKeepMs = 3_600_000;
    await begin();
  });
  afterEach(() => rig.end());

  const begin = () => rig.begin({ sessionIdleMs: indexKeepMs, indexKeepMs });

  const saidIn = (count: number) =>
    Array.from({ length: count }, (_, at) => ({ role: at % 2 === 0 ? 'user' : 'assistant', content: `words ${at}` }));
  const nameOf = (number: number) => turnPattern(`${user}n${number}`);

  /** The turns of one conversation: each holds the answers of all before it. */
  function request(number: number, said: Partial<Said> = {}): TurnOpened {
    const answerKeys = Array.from({ length: number - 1 }, (_, at) => `k${at + 1}`);
    return opened({ turn: nameOf(number), user, messages: saidIn(2 * number - 1), answerKeys, ...said });
  }

  async function say(number: number, said: Partial<Said> = {}): Promise<void> {
    await rig.gateway.publish('turnOpened', request(number, said));
    await rig.gateway.publish('turnCompleted', completed(nameOf(number), user, `k${number}`, said.session));
  }

  async function consentTo(number: number): Promise<Consent | undefined> {
    const turn = nameOf(number);
    const { message } = await until(() => rig.reader.last('turnContinued', { tenant, user, turn }), { what: turn });
    return message.consent;
  }

  const withheld = async (number: number) =>
    (await rig.reader.last('turnWithheld', { tenant, user, turn: nameOf(number) }))?.message.source;

  it('stands in the headers of the facts', async () => {
    const said = async (consent: Partial<Said>, number: number) => {
      await rig.gateway.publish('turnOpened', request(number, consent));
      return (await rig.reader.last('turnOpened', { tenant, user, turn: nameOf(number) }))?.headers.train;
    };
    expect(await said({ train: false }, 1)).toBe('no');
    expect(await said({ train: true }, 2)).toBe('yes');
    expect(await said({}, 3)).toBe('default');
  });

  it.each([
    ['Valkey was emptied', async () => rig.valkey.flush()],
    [
      'Valkey was emptied and the index would have forgotten it',
      async () => {
        await rig.end();
        indexKeepMs = 1_000;
        const first = await rig.reader.last('turnCompleted', { tenant, user, turn: nameOf(1) });
        // The broker's clock decides: what was said before is older than the index reaches.
        await until(async () => {
          const { ts } = (await rig.broker.jsm.streams.info('TURNS')) as { ts?: string };
          return Date.parse(ts ?? '') - (first?.timeMs ?? 0) > 2 * indexKeepMs;
        });
        await rig.valkey.flush();
        await begin();
      },
    ],
  ])('a "no" holds for what follows it, though %s', async (_what, forget) => {
    await say(1, { train: false });
    await rig.untilTaken();
    await forget();
    // Gateways have forgotten it, too: they write down that nothing was said.
    await say(2);
    await rig.untilTaken();
    await say(3);
    expect(await consentTo(2)).toMatchObject({ train: false });
    await rig.untilTaken();
    await rig.valkey.flush();
    await say(4);
    expect(await consentTo(3)).toMatchObject({ train: false });
    expect([await withheld(2), await withheld(3)]).not.toContain(undefined);
  });

  it('a "no" ends where the person says yes', async () => {
    await say(1, { train: false });
    await rig.untilTaken();
    await say(2, { train: true });
    await rig.untilTaken();
    await say(3);
    expect(await consentTo(1)).toMatchObject({ train: false });
    expect(await consentTo(2)).toMatchObject({ train: true });
    await rig.untilTaken();
    await rig.valkey.flush();
    await say(4);
    expect(await consentTo(3)).toMatchObject({ train: true });
  });

  it('a "no" holds in a declared session, though a later request shows nothing of what was said before', async () => {
    const session = `session_${user}`;
    await say(1, { train: false, session, declared: 'mine' });
    await rig.untilTaken();
    await rig.valkey.flush();
    const alone = { session, declared: 'mine', messages: saidIn(1), answerKeys: [] };
    await say(2, alone);
    await rig.untilTaken();
    expect(await withheld(2)).toBe('session');
    await say(3, { session: `${session}b`, declared: 'other', messages: saidIn(1), answerKeys: [] });
    await rig.untilTaken();
    expect(await withheld(3)).toBeUndefined();
  });

  it('answers that nobody knows keep a request from learning where the person said no somewhere, and only there', async () => {
    const elsewhere = { messages: saidIn(3), answerKeys: ['elsewhere'] };
    await say(1, elsewhere);
    await rig.untilTaken();
    expect(await withheld(1)).toBeUndefined();
    await say(2, { train: false, messages: saidIn(1), answerKeys: [] });
    await rig.untilTaken();
    await say(3, elsewhere);
    await say(4, { messages: saidIn(1), answerKeys: [] });
    await rig.untilTaken();
    expect([await withheld(3), await withheld(4)]).toEqual(['unknown', undefined]);
    // What could not be established is no refusal by itself.
    expect(await rig.reader.last('turnWithheld', { tenant, user, source: 'request', turn: nameOf(3) })).toBeUndefined();
  });

  it.each([
    ['history that is shown again', { messages: saidIn(5), answerKeys: ['k1', 'k2'] }, 'unknown'],
    ['declared session', { messages: saidIn(1), answerKeys: [], declared: 'mine' }, 'session'],
  ])('a "no" holds for its %s after the log and Valkey have let its turns go', async (_what, later, source) => {
    const session = `session_${user}`;
    await say(1, { train: false, session, declared: 'mine' });
    await rig.untilTaken();
    await rig.broker.jsm.streams.purge('TURNS');
    await rig.valkey.flush();
    await say(3, { ...later, session: 'declared' in later ? session : 'another' });
    await rig.untilTaken();
    expect(await withheld(3)).toBe(source);
    // Others, and this person's new conversations, are learned from as ever.
    await say(4, { messages: saidIn(1), answerKeys: [] });
    user = `${user}other`;
    await say(3, { messages: saidIn(5), answerKeys: ['k1', 'k2'] });
    await rig.untilTaken();
    expect(await withheld(3)).toBeUndefined();
    user = user.replace('other', '');
    expect(await withheld(4)).toBeUndefined();
  });

  it('a turn whose request is not in the log yet is not learned from', async () => {
    await rig.gateway.publish('turnCompleted', completed(nameOf(1), user, 'k1'));
    await rig.untilTaken();
    await rig.gateway.publish('turnOpened', request(2));
    expect(await consentTo(1)).toEqual({ train: false, source: 'unknown' });
  });

  it('reads what was said from facts without the header, as earlier releases stored them', async () => {
    await rig.end();
    await rig.renewLog();
    const refusing = user;
    const agreeing = `${user}b`;
    for (const train of [false, true]) {
      user = train ? agreeing : refusing;
      await rig.gateway.publish('turnOpened', request(1, { train }));
      const last_by_subj = `backtalk.turn.opened.${tenant}.${user}.${nameOf(1)}`;
      const stored = await rig.broker.jsm.streams.getMessage('TURNS', { last_by_subj });
      await rig.broker.jsm.streams.deleteMessage('TURNS', stored.seq);
      stored.header.delete('Backtalk-Train');
      await rig.broker.js.publish(last_by_subj, stored.data, { headers: stored.header });
      await rig.gateway.publish('turnCompleted', completed(nameOf(1), user, 'k1'));
    }
    await begin();
    await rig.untilTaken();
    // As if it had been taken by a collector that did not write such notes yet.
    const note = await rig.reader.last('turnWithheld', { tenant, user: refusing });
    await rig.broker.jsm.streams.deleteMessage('TURNS', note?.sequence ?? 0);
    await rig.valkey.flush();
    await say(2);
    expect(await consentTo(1)).toMatchObject({ train: true });
    user = refusing;
    await say(2);
    await rig.untilTaken();
    expect([await withheld(1), await withheld(2)]).toEqual(['request', 'session']);
  });
});
