import { FactPublisher, FactReader, newId, systemClock } from '@backtalk/kit';
import { lagBehind, startNats, type TestNats } from '@backtalk/kit/testing';
import { afterAll, beforeAll, expect, it } from 'vitest';

import { completedTurn, openedTurn } from '../testing/turns.js';
import { SourceLog } from './source-log.js';

let nats: TestNats;

beforeAll(async () => {
  nats = await startNats();
});

afterAll(() => nats.stop());

it('a turn is not settled as missing because a copy of the log lags', async () => {
  const ids = { tenant: 'acme', user: 'ann', turn: newId() };
  const gateway = new FactPublisher(await nats.connect('gateway'));
  await gateway.publish('turnOpened', openedTurn(ids));
  await gateway.publish('turnCompleted', completedTurn(ids));
  const log = new SourceLog(new FactReader(await nats.connect('trainer')), systemClock);
  const copy = await lagBehind(nats, ids);
  try {
    for (let round = 0; round < 20; round += 1) {
      expect(await log.source(ids)).not.toBe('missing');
      expect(await log.bytes(ids)).toBeGreaterThan(0);
    }
  } finally {
    await copy.remove();
  }
  expect(await log.source({ ...ids, turn: newId() })).toBe('missing');
});
