import { FactPublisher, FactReader, newId } from '@backtalk/kit';
import { lagBehind, startNats, type TestNats } from '@backtalk/kit/testing';
import { TurnCompleted, TurnOpened } from '@backtalk/proto/facts';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { JudgedTurns } from './judged-turns.js';

let nats: TestNats;

beforeAll(async () => {
  nats = await startNats();
});

afterAll(() => nats.stop());

it('a turn in a session by name that nothing has placed yet is not learned from where its person said no', async () => {
  const ids = { tenant: 'acme', user: newId(), turn: newId(), policy: 'backtalk' };
  const refusals = { said: () => Promise.resolve(true) };
  const turns = new JudgedTurns(new FactReader(await nats.connect('judge')), refusals);
  const consent = { train: true, source: 'default' };
  const named = TurnOpened.fromPartial({ ...ids, consent, declaredSession: 's' });
  expect(await turns.withheld(named, undefined)).toBe('consent_unknown');
  expect(await turns.withheld({ ...named, declaredSession: '' }, undefined)).toBeUndefined();
  expect(await turns.withheld({ ...named, provisionalParent: newId() }, undefined)).toBeUndefined();
});

it('a turn is neither unreadable nor free to be learned from because a copy of the log lags', async () => {
  const ids = { tenant: 'acme', user: 'ann', turn: newId(), policy: 'backtalk' };
  const gateway = new FactPublisher(await nats.connect('gateway'));
  const opened = TurnOpened.fromPartial({ ...ids, consent: { train: true, source: 'default' } });
  await gateway.publish('turnOpened', opened);
  await gateway.publish('turnCompleted', TurnCompleted.fromPartial(ids));
  await gateway.publish('turnWithheld', { ...ids, session: 's', source: 'session' });
  const turns = new JudgedTurns(new FactReader(await nats.connect('judge')), { said: () => Promise.resolve(false) });
  const copy = await lagBehind(nats, ids);
  try {
    for (let round = 0; round < 20; round += 1) {
      expect((await turns.opened(ids)).turn).toBe(ids.turn);
      expect((await turns.completed(ids)).turn).toBe(ids.turn);
      expect(await turns.withheld(opened, undefined)).toBe('opted_out');
    }
  } finally {
    await copy.remove();
  }
});
