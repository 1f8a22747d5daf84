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
