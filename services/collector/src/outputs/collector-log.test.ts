import { FactPublisher, FactReader, newId } from '@backtalk/kit';
import { lagBehind, startNats, type TestNats } from '@backtalk/kit/testing';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { opened, tenant } from '../testing/turns.js';
import { CollectorLog } from './collector-log.js';

let nats: TestNats;

beforeAll(async () => {
  nats = await startNats();
});

afterAll(() => nats.stop());

it('neither a request nor a "no" is absent because a copy of the log lags', async () => {
  const turn = newId();
  const owner = { tenant, user: 'ann' };
  const gateway = new FactPublisher(await nats.connect('gateway'));
  await gateway.publish('turnOpened', opened({ turn, user: owner.user, messages: [], train: false }));
  await gateway.publish('turnWithheld', { ...owner, turn, session: 's', source: 'request' });
  const broker = await nats.connect('collector');
  const log = new CollectorLog(broker, new FactReader(broker), new FactPublisher(broker));
  const copy = await lagBehind(nats, { ...owner, turn });
  try {
    for (let round = 0; round < 20; round += 1) {
      expect((await log.opened(owner, turn))?.message.turn).toBe(turn);
      expect(await log.trains(owner, turn)).toBe('no');
      expect(await log.saidNo(owner)).toBe(true);
    }
  } finally {
    await copy.remove();
  }
});
