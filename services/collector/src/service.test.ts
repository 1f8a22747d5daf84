import { systemClock, type Clock, type StoredFact } from '@backtalk/kit';
import { until } from '@backtalk/kit/testing';
import { Provenance, SessionClosed_Reason, TurnOpened } from '@backtalk/proto/facts';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { CollectorRig } from './testing/collector-rig.js';
import { completed, opened, tenant, turnPattern } from './testing/turns.js';

const ask = { role: 'user', content: 'why is the sky blue?' };
const answer = { role: 'assistant', content: 'because of the air' };
const reply = { role: 'user', content: 'too long' };

describe('collector', () => {
  let rig: CollectorRig;
  let user = '';

  beforeAll(async () => {
    rig = await CollectorRig.start();
  });
  afterAll(() => rig.stop());
  beforeEach(async () => {
    user = rig.nextUser();
    await rig.begin();
  });
  afterEach(() => rig.end());

  function continuation(): Promise<StoredFact<'turnContinued'>> {
    return until(() => rig.reader.last('turnContinued', { tenant, user }), { what: 'turn.continued' });
  }

  function closing(): Promise<StoredFact<'sessionClosed'>> {
    return until(() => rig.reader.last('sessionClosed', { tenant, user }), { what: 'session.closed' });
  }

  async function firstTurn(): Promise<string> {
    const turn = turnPattern(`${user}a`);
    await rig.gateway.publish('turnOpened', opened({ turn, user, messages: [ask] }));
    await rig.gateway.publish('turnCompleted', completed(turn, user, 'k1'));
    return turn;
  }

  it('gives a turn its next state when a request contains its answer', async () => {
    const turn = await firstTurn();
    const next = turnPattern(`${user}b`);
    await rig.gateway.publish(
      'turnOpened',
      opened({ turn: next, user, messages: [ask, answer, reply], answerKeys: ['k1'] }),
    );
    const { message } = await continuation();
    expect(message).toMatchObject({ turn, continuedBy: next, session: turn.replace('turn_', 'session_'), main: true });
    expect(message.nextState).toEqual([
      { provenance: Provenance.PROVENANCE_USER, text: 'too long', toolCallId: '', toolName: '', isError: false },
    ]);
  });

  it('waits for an answer that lies in a spool while the request that continues it is in the log already', async () => {
    const turn = turnPattern(`${user}a`);
    const next = turnPattern(`${user}b`);
    await rig.gateway.publish(
      'turnOpened',
      opened({ turn: next, user, messages: [ask, answer, reply], answerKeys: ['k1'], parent: turn }),
    );
    await rig.gateway.publish('turnCompleted', completed(turn, user, 'k1'));
    await rig.gateway.publish('turnOpened', opened({ turn, user, messages: [ask] }));
    expect((await continuation()).message).toMatchObject({ turn, continuedBy: next });
  });

  it('tells turns that gave the same answer apart without reading their requests, which may be large', async () => {
    const [right, newer, next] = ['a', 'b', 'c'].map((name) => turnPattern(`${user}${name}`)) as [
      string,
      string,
      string,
    ];
    for (const [turn, key] of [[right, 'k1'] as const, [newer, 'k2'] as const]) {
      await rig.gateway.publish('turnOpened', opened({ turn, user, messages: [ask, answer, ask], answerKeys: [key] }));
      await rig.gateway.publish('turnCompleted', completed(turn, user, 'k'));
    }
    await rig.untilTaken();
    for (const turn of [right, newer]) {
      const fact = await rig.reader.last('turnOpened', { tenant, user, turn });
      await rig.broker.jsm.streams.deleteMessage('TURNS', fact?.sequence ?? 0);
    }
    const messages = [ask, answer, ask, answer, reply];
    await rig.gateway.publish('turnOpened', opened({ turn: next, user, messages, answerKeys: ['k1', 'k'] }));
    expect((await continuation()).message).toMatchObject({ turn: right, continuedBy: next });
  });

  it.each([
    ['as the index has it', () => Promise.resolve()],
    ['after Valkey was emptied', () => rig.valkey.flush()],
  ])('tells turns that gave the same answer apart by what was said before it, %s', async (_when, meanwhile) => {
    const asked = [turnPattern(`${user}a`), turnPattern(`${user}b`)] as const;
    for (const [at, turn] of asked.entries()) {
      await rig.gateway.publish(
        'turnOpened',
        opened({ turn, user, messages: [ask], questionKeys: [`q${String(at)}`] }),
      );
      await rig.gateway.publish('turnCompleted', completed(turn, user, 'k'));
    }
    await rig.untilTaken();
    await meanwhile();
    const next = turnPattern(`${user}c`);
    const said = { answerKeys: ['k'], questionKeys: ['q0', 'q9'] };
    await rig.gateway.publish('turnOpened', opened({ turn: next, user, messages: [ask, answer, reply], ...said }));
    expect((await continuation()).message).toMatchObject({ turn: asked[0], continuedBy: next });
  });

  it('links a request to its newest answer, though it came after an older one was found', async () => {
    const [second, third] = [turnPattern(`${user}b`), turnPattern(`${user}c`)];
    await firstTurn();
    const said = [ask, answer, reply];
    await rig.gateway.publish('turnOpened', opened({ turn: second, user, messages: said, answerKeys: ['k1'] }));
    await continuation();
    const more = [...said, { role: 'assistant', content: 'air' }, { role: 'user', content: 'thanks' }];
    await rig.gateway.publish('turnOpened', opened({ turn: third, user, messages: more, answerKeys: ['k1', 'k2'] }));
    await rig.untilTaken();
    await rig.gateway.publish('turnCompleted', completed(second, user, 'k2'));
    const next = await until(() => rig.reader.last('turnContinued', { tenant, user, turn: second }), {
      what: 'its next state',
    });
    expect(next.message).toMatchObject({ turn: second, continuedBy: third });
  });

  describe('declared sessions', () => {
    const reworded = { role: 'assistant', content: 'the air, in short (edited)' };

    async function declaredTurn(name: string, messages: readonly unknown[], answerKeys: readonly string[] = []) {
      const session = `session_${user}`;
      const turn = turnPattern(`${user}${name}`);
      const said = { turn, user, messages, answerKeys, session, declared: 'mine' };
      await rig.gateway.publish('turnOpened', opened(said));
      return {
        turn,
        complete: () => rig.gateway.publish('turnCompleted', completed(turn, user, `k-${turn}`, session)),
      };
    }

    it('links a request of a declared session that holds our answer in other words', async () => {
      const first = await declaredTurn('a', [ask]);
      await first.complete();
      const title = await declaredTurn('t', [{ role: 'user', content: 'Write a short title for this conversation' }]);
      await title.complete();
      const next = await declaredTurn('b', [ask, reworded, reply], ['other']);
      const { message } = await continuation();
      expect(message).toMatchObject({ turn: first.turn, continuedBy: next.turn });
      expect(message.nextState).toMatchObject([{ text: 'too long' }]);
    });

    it('links a reworded answer that came into the log after the request, and after Valkey was emptied', async () => {
      const first = await declaredTurn('a', [ask]);
      const next = await declaredTurn('b', [ask, reworded, reply], ['other']);
      await rig.untilTaken();
      await rig.valkey.flush();
      await first.complete();
      expect((await continuation()).message).toMatchObject({ turn: first.turn, continuedBy: next.turn });
    });

    it('links no request of a declared session that repeats nothing the user said, and none to its own retry', async () => {
      await (await declaredTurn('a', [ask])).complete();
      await (await declaredTurn('b', [{ role: 'user', content: 'something else' }, reworded, reply], ['x'])).complete();
      await (await declaredTurn('c', [ask])).complete();
      await rig.untilTaken();
      expect(await rig.reader.last('turnContinued', { tenant, user })).toBeUndefined();
    });
  });

  it('counts the first continuation; a retry with the same body is a branch', async () => {
    const turn = await firstTurn();
    const body = { user, messages: [ask, answer, reply], answerKeys: ['k1'] };
    await rig.gateway.publish('turnOpened', opened({ turn: turnPattern(`${user}b`), ...body }));
    await continuation();
    await rig.gateway.publish('turnOpened', opened({ turn: turnPattern(`${user}c`), ...body }));
    await rig.gateway.publish('sessionEnded', {
      session: turn.replace('turn_', 'session_'),
      tenant,
      user,
      turn,
      outcome: undefined,
    });
    const closed = await closing();
    expect(closed.message).toMatchObject({ reason: SessionClosed_Reason.REASON_DONE, turns: [turn] });
    expect((await continuation()).message.continuedBy).toBe(turnPattern(`${user}b`));
  });

  /** A turn of a session that its client names. */
  const sayIn = async (session: string, name: string) => {
    const turn = turnPattern(`${user}${name}`);
    await rig.gateway.publish('turnOpened', opened({ turn, user, messages: [ask], session, declared: 'mine' }));
    await rig.gateway.publish('turnCompleted', completed(turn, user, `k${name}`, session));
    await rig.untilTaken();
    return turn;
  };

  it.each([
    ['soon', () => Promise.resolve(0)],
    ['when the index has let go of it', (session: string) => rig.index.del(`collector:session:${session}`)],
  ])(
    'closes a declared session that is used again after its end, %s, when its client ends it again',
    async (_, later) => {
      const session = `session_${user}`;
      const first = await sayIn(session, 'a');
      await rig.gateway.publish('sessionEnded', { session, tenant, user, turn: first, outcome: undefined });
      expect((await closing()).message.session).toBe(session);
      await rig.untilTaken();
      await later(session);
      const second = await sayIn(session, 'b');
      const again = second.replace('turn_', 'session_');
      // The name is used up in the log: the gateway names the end after the last turn.
      const last = await sayIn(session, 'c');
      const name = last.replace('turn_', 'session_');
      await rig.gateway.publish('sessionEnded', { session: name, tenant, user, turn: last, outcome: undefined });
      const closed = await until(() => rig.reader.last('sessionClosed', { tenant, user, session: again }), {
        what: again,
      });
      expect(closed.message.reason).toBe(SessionClosed_Reason.REASON_DONE);
    },
  );

  it('asks Valkey for the last few answers of a request only, however many it holds', async () => {
    await firstTurn();
    await rig.untilTaken();
    const asked = async () => {
      const found = /cmdstat_zrevrange:calls=(\d+)/.exec(await rig.index.info('commandstats'));
      return Number(found?.[1] ?? 0);
    };
    const before = await asked();
    const answerKeys = Array.from({ length: 50_000 }, (_, at) => `other${at}`).concat('k1');
    const messages = [ask, answer, reply];
    await rig.gateway.publish('turnOpened', opened({ turn: turnPattern(`${user}b`), user, messages, answerKeys }));
    await rig.untilTaken();
    expect((await asked()) - before).toBeLessThan(50);
  });

  it('links every request that waited for an answer, as clients that try again do', async () => {
    const turn = turnPattern(`${user}a`);
    await rig.gateway.publish('turnOpened', opened({ turn, user, messages: [ask] }));
    const said = { user, messages: [ask, answer, reply], answerKeys: ['k1'], parent: turn };
    const waiting = Array.from({ length: 40 }, (_, at) => turnPattern(`${user}w${at}`));
    for (const one of waiting) await rig.gateway.publish('turnOpened', opened({ ...said, turn: one }));
    await rig.untilTaken();
    await rig.gateway.publish('turnCompleted', completed(turn, user, 'k1'));
    await rig.untilTaken();
    const parents = await Promise.all(waiting.map((one) => rig.index.hget(`collector:turn:${one}`, 'parent')));
    expect(new Set(parents)).toEqual(new Set([turn]));
  });

  it('carries a "do not learn from me" along the session', async () => {
    const turn = turnPattern(`${user}a`);
    await rig.gateway.publish('turnOpened', opened({ turn, user, messages: [ask], train: false }));
    await rig.gateway.publish('turnCompleted', completed(turn, user, 'k1'));
    await rig.gateway.publish(
      'turnOpened',
      opened({ turn: turnPattern(`${user}b`), user, messages: [ask, answer, reply], answerKeys: ['k1'] }),
    );
    expect((await continuation()).message.consent?.train).toBe(false);
  });

  it('rebuilds its index from the log after Valkey was emptied, with no second effect', async () => {
    const turn = await firstTurn();
    const body = { user, messages: [ask, answer, reply], answerKeys: ['k1'] };
    await rig.gateway.publish('turnOpened', opened({ turn: turnPattern(`${user}b`), ...body }));
    await continuation();
    await rig.gateway.publish('turnCompleted', completed(turnPattern(`${user}b`), user, 'k2'));
    await rig.valkey.flush();
    const third = turnPattern(`${user}c`);
    const longer = [...body.messages, { role: 'assistant', content: 'air' }, { role: 'user', content: 'thanks' }];
    await rig.gateway.publish('turnOpened', opened({ turn: third, user, messages: longer, answerKeys: ['k1', 'k2'] }));
    const continued = await until(
      async () => (await rig.reader.last('turnContinued', { tenant, user, turn: turnPattern(`${user}b`) }))?.message,
      { what: 'the second continuation' },
    );
    expect(continued).toMatchObject({ continuedBy: third, session: turn.replace('turn_', 'session_'), parent: turn });
    const all: string[] = [];
    for await (const fact of rig.reader.read(['turnContinued'], { filter: { turnContinued: { user } } }))
      all.push(fact.message.turn);
    expect(all.sort()).toEqual([turn, turnPattern(`${user}b`)].sort());
  });

  it('links a request that waited for an answer while Valkey was emptied', async () => {
    const turn = turnPattern(`${user}a`);
    const next = turnPattern(`${user}b`);
    const asked = opened({ turn: next, user, messages: [ask, answer, reply], answerKeys: ['k1'], parent: turn });
    await rig.gateway.publish('turnOpened', asked);
    await rig.untilTaken();
    await rig.valkey.flush();
    await rig.gateway.publish('turnOpened', opened({ turn, user, messages: [ask] }));
    await rig.gateway.publish('turnCompleted', completed(turn, user, 'k1'));
    expect((await continuation()).message).toMatchObject({ turn, continuedBy: next });
  });

  it('a collector has its index again when Valkey was killed in the middle of the work', async () => {
    const turn = await firstTurn();
    await rig.untilTaken();
    await rig.valkey.kill();
    await rig.valkey.restart();
    const body = { user, messages: [ask, answer, reply], answerKeys: ['k1'] };
    await rig.gateway.publish('turnOpened', opened({ turn: turnPattern(`${user}b`), ...body }));
    expect((await continuation()).message.turn).toBe(turn);
  });

  it('closes a session in which nothing is said any more', async () => {
    await rig.end();
    await rig.begin({ sessionIdleMs: 400 });
    const alone = await firstTurn();
    const reason = SessionClosed_Reason.REASON_IDLE;
    expect((await closing()).message).toMatchObject({ reason, turns: [], alone });
  });

  it('names no answer of a closed session in which one was followed', async () => {
    await rig.end();
    await rig.begin({ sessionIdleMs: 1_000 });
    const turn = await firstTurn();
    const next = { turn: turnPattern(`${user}b`), user, messages: [ask, answer, reply], answerKeys: ['k1'] };
    await rig.gateway.publish('turnOpened', opened(next));
    await continuation();
    expect((await closing()).message).toMatchObject({ turns: [turn], alone: '' });
  });

  it('looks no more at a closed session that a late answer touched', async () => {
    await rig.end();
    await rig.begin({ sessionIdleMs: 400 });
    const turn = await firstTurn();
    const { session } = (await closing()).message;
    const isLookedAt = async () => (await rig.index.zscore('collector:sessions', session)) !== null;
    await rig.gateway.publish('turnCompleted', completed(turnPattern(`${user}b`), user, 'k2', session));
    await rig.untilTaken();
    await until(async () => !(await isLookedAt()), { what: 'The session is forgotten' });
    expect((await closing()).message.turns).toEqual([]);
    expect(turn).toContain(user);
  });

  it('rebuilds its index though a turn goes on from one that has left the log', async () => {
    const turn = await firstTurn();
    await rig.untilTaken();
    await rig.end();
    const orphan = opened({ turn: turnPattern(`${user}o`), user, messages: [answer, reply], answerKeys: ['k1'] });
    const conversation = { ...orphan.conversation, baseTurn: 'turn_gone0000', sharedMessages: 1 };
    await rig.gateway.publish('turnOpened', TurnOpened.fromPartial({ ...orphan, conversation }));
    await rig.valkey.flush();
    await rig.begin();
    const next = { turn: turnPattern(`${user}b`), user, messages: [ask, answer, reply], answerKeys: ['k1'] };
    await rig.gateway.publish('turnOpened', opened(next));
    expect((await continuation()).message.turn).toBe(turn);
  });

  it('closes no session because its own clock is an hour ahead', async () => {
    await rig.end();
    let looks = 0;
    const clock: Clock = {
      ...systemClock,
      now: () => systemClock.now() + 3_600_000,
      timer: (_ms, look) => {
        looks += 1;
        return systemClock.timer(20, look);
      },
    };
    await rig.begin({ sessionIdleMs: 60_000 }, { clock });
    await firstTurn();
    await rig.untilTaken();
    const before = looks;
    await until(() => looks > before + 2, { what: 'Looks for idle sessions' });
    expect(await rig.reader.last('sessionClosed', { tenant, user })).toBeUndefined();
  });
});

describe('collector without a log', () => {
  it('ends through `fail` when its stream is gone', async () => {
    const rig = await CollectorRig.start();
    const failures: unknown[] = [];
    try {
      await rig.begin({}, { fail: (error: unknown) => failures.push(error) });
      await rig.broker.jsm.streams.delete('TURNS');
      await until(() => failures.length > 0, { what: 'the failure' });
      expect(failures[0]).toMatchObject({ code: 'stream_missing', retry: 'stop' });
    } finally {
      await rig.stop();
    }
  });
});
