// What keeps talks apart that say the same, and what keeps one person's turn from holding up another's.
import { deadLetters, type Delivery, type StoredFact } from '@backtalk/kit';
import { FakeClock, until } from '@backtalk/kit/testing';
import { TurnOpened, type SessionClosed } from '@backtalk/proto/facts';
import { afterAll, afterEach, beforeAll, beforeEach, expect, it } from 'vitest';
import { collectorHandlers } from './inputs/facts.js';
import type { LinkParts } from './inputs/link-turn.js';
import { IdleSessions } from './inputs/sessions.js';
import { CollectorRig } from './testing/collector-rig.js';
import { completed, opened, tenant, turnPattern, type Said } from './testing/turns.js';

const ask = { role: 'user', content: 'Why is the sky blue?' };
const answer = { role: 'assistant', content: 'Because of the air.' };
const reply = { role: 'user', content: 'Too long.' };

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

const idOf = (name: string) => turnPattern(`${user}${name}`);
const sessionOf = (name: string) => `session_${user}${name}`;

const open = (name: string, said: Partial<Said> = {}) =>
  rig.gateway.publish('turnOpened', opened({ turn: idOf(name), user, messages: [ask], ...said }));
const complete = (name: string, key: string, session?: string) =>
  rig.gateway.publish('turnCompleted', completed(idOf(name), user, key, session));
const continuedBy = (name: string) => async () =>
  (await rig.reader.last('turnContinued', { tenant, user, turn: idOf(name) }))?.message.continuedBy;
const closedIn = (session: string) => async (): Promise<SessionClosed | undefined> =>
  (await rig.reader.last('sessionClosed', { tenant, user, session }))?.message;

it('attempts at one task that answer the same go on within their own sessions', async () => {
  for (const name of ['a', 'b']) {
    await open(`${name}1`, { session: sessionOf(name), declared: name });
    await complete(`${name}1`, 'same', sessionOf(name));
  }
  await rig.untilTaken();
  const messages = [ask, answer, reply];
  for (const name of ['a', 'b'])
    await open(`${name}2`, { messages, answerKeys: ['same'], session: sessionOf(name), declared: name });
  expect(await until(continuedBy('a1'))).toBe(idOf('a2'));
  expect(await until(continuedBy('b1'))).toBe(idOf('b2'));
});

it('an answer whose waiting request cannot be read is taken all the same, and holds no other person up', async () => {
  await open('b');
  const stored = opened({ turn: idOf('c'), user, messages: [answer, reply], answerKeys: ['kb'], parent: idOf('b') });
  const conversation = { ...stored.conversation, baseTurn: 'turn_gone0000', sharedMessages: 1 };
  await rig.gateway.publish('turnOpened', TurnOpened.fromPartial({ ...stored, conversation }));
  await open('d', { messages: [ask, answer, reply], answerKeys: ['kb'] });
  await rig.untilTaken();
  await complete('b', 'kb');
  await rig.untilTaken();
  expect(await deadLetters(rig.broker).count()).toBe(0);
  expect(await until(continuedBy('b'))).toBe(idOf('d'));
});

it('a waiting request that fails for a moment waits on, and is linked when its answer is delivered again', async () => {
  let isAway = true;
  const linked: string[] = [];
  const index = {
    turn: (turn: string) => Promise.resolve(turn === 'turn_b' ? { parent: 'turn_a' } : undefined),
    putTurn: () => Promise.resolve(),
    addAnswer: () => Promise.resolve(),
    waiting: (_: object, name: string) => Promise.resolve(name === 'ka' ? ['turn_b'] : []),
    stopWaiting: (_: object, __: string, waiting: string) => Promise.resolve(linked.push(waiting)),
  };
  const away = { code: 'broker_unavailable', retry: 'later', status: 503 };
  const log = {
    opened: () => (isAway ? Promise.reject(Object.assign(new RangeError('away'), away)) : Promise.resolve()),
  };
  const parts = { index, log, events: { waitingFailed: () => undefined } } as unknown as LinkParts;
  const taken = () => Promise.resolve(true);
  const { turnCompleted } = collectorHandlers(parts, (work) => work(), { answersTaken: taken, turnsTaken: taken });
  const message = completed('turn_a', 'u', 'ka', '');
  const handled = () =>
    turnCompleted({ message, sequence: 1, timeMs: 0 } as StoredFact<'turnCompleted'>, { deliveries: 1 } as Delivery);
  await expect(handled()).rejects.toThrow();
  expect(linked).toEqual([]);
  isAway = false;
  await handled();
  expect(linked).toEqual(['turn_b']);
});

it('sessions that ended while the collector was away are closed with their turns', async () => {
  await rig.end();
  const names = Array.from({ length: 20 }, (_, at) => `s${String(at).padStart(2, '0')}`);
  for (const name of names) {
    const session = sessionOf(name);
    await open(`${name}a`, { session, declared: name });
    await complete(`${name}a`, `k${name}`, session);
    await open(`${name}b`, { messages: [ask, answer, reply], answerKeys: [`k${name}`], session, declared: name });
    await complete(`${name}b`, `l${name}`, session);
    const ended = { session, tenant, user, turn: idOf(`${name}b`) };
    await rig.gateway.publish('sessionEnded', { ...ended, outcome: undefined });
  }
  await rig.begin();
  for (const name of names)
    expect(await until(closedIn(sessionOf(name)), { what: name })).toMatchObject({ turns: [idOf(`${name}a`)] });
});

it('a reworded answer is recognised in the session that a name leads to after its end, also when it comes late', async () => {
  const session = sessionOf('mine');
  const said = { session, declared: 'mine' };
  await open('a', said);
  await complete('a', 'ka', session);
  await rig.untilTaken();
  await rig.gateway.publish('sessionEnded', { session, tenant, user, turn: idOf('a'), outcome: undefined });
  await until(closedIn(session));
  await open('b', said);
  await complete('b', 'kb', session);
  await rig.untilTaken();
  const reworded = [ask, { role: 'assistant', content: 'The air.' }, reply];
  await open('c', { ...said, messages: reworded, answerKeys: ['other'] });
  expect(await until(continuedBy('b'))).toBe(idOf('c'));
  const again = [...reworded, { role: 'assistant', content: 'Rayleigh.' }, { role: 'user', content: 'Shorter.' }];
  await open('d', { ...said, messages: again, answerKeys: ['other', 'another'] });
  await rig.untilTaken();
  await complete('c', 'kc', session);
  expect(await until(continuedBy('c'))).toBe(idOf('d'));
});

it('a request that ends with words of its client’s own is linked to an answer that comes into the log after it', async () => {
  await open('a');
  const begun = { role: 'assistant', content: 'Because' };
  const messages = [ask, answer, reply, begun];
  await open('b', { messages, answerKeys: ['ka', 'begun'], parent: idOf('a') });
  await rig.untilTaken();
  await complete('a', 'ka');
  expect(await until(continuedBy('a'))).toBe(idOf('b'));
});

it('all sessions that are idle are closed in one look', async () => {
  const idle = Array.from({ length: 250 }, (_, at) => `session_${String(at)}`);
  const index = {
    idleSince: (_: number, limit: number) => Promise.resolve(idle.slice(0, limit)),
    session: () => Promise.resolve(undefined),
    forgetIdle: (session: string) => Promise.resolve(idle.splice(idle.indexOf(session), 1)),
    openSessions: () => Promise.resolve(0),
  };
  const log = { now: () => Promise.resolve({ timeMs: 0, sequence: 0 }) };
  const clock = new FakeClock();
  let looks = 0;
  const events = { openSessions: () => (looks += 1) };
  const parts = { index, log, events } as unknown as LinkParts;
  const fail = () => undefined;
  const sessions = new IdleSessions(parts, (work) => work(), {
    clock,
    idleMs: 600_000,
    turnsTaken: () => Promise.resolve(true),
    fail,
  });
  sessions.start();
  await clock.advance(15_000);
  await until(() => looks > 0);
  expect([idle.length, looks]).toEqual([0, 1]);
  await sessions.stop();
});

it('no session is taken for idle by what is still to be read of it', async () => {
  const asked: number[] = [];
  let [sequence, taken] = [40, 10];
  const clock = new FakeClock(0);
  const index = {
    idleSince: (ms: number) => {
      asked.push(ms);
      return Promise.resolve([]);
    },
    openSessions: () => Promise.resolve(0),
  };
  const log = { now: () => Promise.resolve({ timeMs: clock.now(), sequence }) };
  const parts = { index, log, events: { openSessions: () => undefined } } as unknown as LinkParts;
  const turnsTaken = (until: number) => Promise.resolve(until <= taken);
  const sessions = new IdleSessions(parts, (work) => work(), {
    clock,
    idleMs: 1_000,
    turnsTaken,
    fail: () => undefined,
  });
  const look = async () => {
    const looked = asked.length;
    await clock.advance(250);
    await until(() => asked.length > looked);
    return asked.at(-1);
  };
  sessions.start();
  // After an outage nothing is known to be idle, until what the log had at the first look is taken; then what came since is awaited.
  expect([await look(), await look()]).toEqual([-1_000, -1_000]);
  [sequence, taken] = [60, 40];
  expect(await look()).toBe(250 - 1_000);
  expect(await look()).toBe(250 - 1_000);
  taken = 60;
  expect(await look()).toBe(5 * 250 - 1_000);
  await sessions.stop();
});
