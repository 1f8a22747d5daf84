// A session that was an attempt at a task, and is over with its outcome.
import type { Delivery, StoredFact } from '@backtalk/kit';
import { until } from '@backtalk/kit/testing';
import { SessionClosed_Reason } from '@backtalk/proto/facts';
import { afterAll, afterEach, beforeAll, beforeEach, expect, it } from 'vitest';
import { collectorHandlers } from './inputs/facts.js';
import type { LinkParts } from './inputs/link-turn.js';
import { CollectorRig } from './testing/collector-rig.js';
import { completed, opened, tenant, turnPattern } from './testing/turns.js';

const ask = { role: 'user', content: 'Make the tests pass.' };
const answer = { role: 'assistant', content: 'Done.' };
const reply = { role: 'user', content: '{"exit_code": 1}' };
const outcome = { score: 0.5, attempts: 4, turns: 0 };

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

/** A turn of a session that its client names. */
async function say(session: string, name: string, messages: readonly object[] = [ask], answerKeys: string[] = []) {
  const turn = turnPattern(`${user}${name}`);
  await rig.gateway.publish('turnOpened', opened({ turn, user, messages, answerKeys, session, declared: 'mine' }));
  await rig.gateway.publish('turnCompleted', completed(turn, user, `k${name}`, session));
  return turn;
}

const end = (session: string, turn: string) =>
  rig.gateway.publish('sessionEnded', { session, tenant, user, turn, outcome });

function closing(session: string): Promise<StoredFact<'sessionClosed'>> {
  return until(() => rig.reader.last('sessionClosed', { tenant, user, session }), { what: 'session.closed' });
}

it('an outcome closes the session with every turn, also the last, which nothing continues', async () => {
  const session = `session_${user}`;
  const first = await say(session, 'a');
  await rig.untilTaken();
  // It comes before the last answer does.
  const { sequence } = await end(session, turnPattern(`${user}b`));
  await until(async () => {
    const { delivered } = await rig.broker.jsm.consumers.info('TURNS', 'collector_sessionEnded');
    return delivered.stream_seq >= sequence;
  });
  const last = await say(session, 'b', [ask, answer, reply], ['ka']);
  const reason = SessionClosed_Reason.REASON_DONE;
  expect((await closing(session)).message).toMatchObject({ session, reason, turns: [first, last], outcome });
});

it('an outcome waits as long as the index is behind the log, and a few times for what lies in a spool', async () => {
  const index: Pick<LinkParts['index'], 'turn'> = { turn: () => Promise.resolve(undefined) };
  const fact = { message: { session: 's', tenant, user, turn: 't', outcome }, sequence: 7 };
  const handled = (isTaken: boolean, deliveries: number) => {
    const taken = () => Promise.resolve(isTaken);
    const handlers = collectorHandlers({ index } as LinkParts, (work) => work(), {
      answersTaken: taken,
      turnsTaken: taken,
    });
    return handlers.sessionEnded(fact as StoredFact<'sessionEnded'>, { deliveries } as Delivery);
  };
  await expect(handled(false, 100)).rejects.toMatchObject({ code: 'answers_behind', status: 503 });
  await expect(handled(true, 1)).rejects.toMatchObject({ code: 'turn_missing' });
});

it('an outcome takes no request beside the main line for the last answer', async () => {
  const session = `session_${user}`;
  const first = await say(session, 'a');
  const last = await say(session, 'b', [ask, answer, reply], ['ka']);
  // A title, say, which ends after the answer.
  const beside = await say(session, 'c', [{ role: 'user', content: 'A title for this talk, please.' }]);
  await rig.untilTaken();
  await end(session, beside);
  expect((await closing(session)).message.turns).toEqual([first, last]);
});

it('an outcome ends the session that its turn is in, where the name was used before, and not the one before', async () => {
  const session = `session_${user}`;
  const first = await say(session, 'a');
  await end(session, first);
  expect((await closing(session)).message).toMatchObject({ session, turns: [first], outcome });
  const second = await say(session, 'b');
  const last = await say(session, 'c', [ask, answer, reply], ['kb']);
  await rig.untilTaken();
  await end(last.replace('turn_', 'session_'), last);
  expect((await closing(second.replace('turn_', 'session_'))).message.turns).toEqual([second, last]);
});

it('a name that was used before stands for its newest session, also after Valkey was emptied', async () => {
  const session = `session_${user}`;
  const first = await say(session, 'a');
  await end(session, first);
  await closing(session);
  const second = await say(session, 'b');
  await rig.untilTaken();
  await rig.valkey.flush();
  const last = await say(session, 'c', [ask, answer, reply], ['kb']);
  await rig.untilTaken();
  await end(last.replace('turn_', 'session_'), last);
  expect((await closing(second.replace('turn_', 'session_'))).message.turns).toEqual([second, last]);
});
