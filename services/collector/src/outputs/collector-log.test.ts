import { FactPublisher, FactReader, newId, newTrace } from '@backtalk/kit';
import { lagBehind, startNats, type TestNats } from '@backtalk/kit/testing';
import { SessionClosed, SessionClosed_Reason } from '@backtalk/proto/facts';
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

it('a session was closed before what came after its end, and not before what came before', async () => {
  const ids = { tenant, user: 'bob', session: 'session_b' };
  const gateway = new FactPublisher(await nats.connect('gateway'));
  const broker = await nats.connect('collector');
  const publisher = new FactPublisher(broker);
  const log = new CollectorLog(broker, new FactReader(broker), publisher);
  const say = async () => {
    const turn = newId();
    await gateway.publish('turnOpened', opened({ turn, user: ids.user, messages: [] }));
    return (await log.opened(ids, turn))?.sequence ?? 0;
  };
  const before = await say();
  const closing = SessionClosed.fromPartial({ ...ids, policy: 'p', reason: SessionClosed_Reason.REASON_DONE });
  await log.publishClosed(closing, newTrace());
  const after = await say();
  expect(await log.wasClosed(ids, ids.session, before)).toBe(false);
  expect(await log.wasClosed(ids, ids.session, after)).toBe(true);
  expect(await log.wasClosed(ids, 'session_c', after)).toBe(false);
});
