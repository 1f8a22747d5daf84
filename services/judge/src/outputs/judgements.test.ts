import { FactPublisher, FactReader, newId, newTrace } from '@backtalk/kit';
import { lagBehind, startNats, type TestNats } from '@backtalk/kit/testing';
import { TurnJudged, TurnOpened } from '@backtalk/proto/facts';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { Judgements } from './judgements.js';

let nats: TestNats;

beforeAll(async () => {
  nats = await startNats();
});

afterAll(() => nats.stop());

it('a judgement is not made again because a copy of the log lags', async () => {
  const ids = { tenant: 'acme', user: newId(), turn: newId(), policy: 'backtalk' };
  const asked = { ...ids, asked: newId() };
  const broker = await nats.connect('judge');
  await new FactPublisher(await nats.connect('gateway')).publish('turnOpened', TurnOpened.fromPartial(ids));
  const trace = newTrace();
  const judgements = new Judgements(new FactReader(broker), new FactPublisher(broker), () => false);
  await judgements.storeFirst(TurnJudged.fromPartial(ids), trace);
  await judgements.storeAgain({ ...asked, judged: undefined, refused: 'gone' }, trace);
  const copy = await lagBehind(nats, ids);
  try {
    for (let round = 0; round < 20; round += 1) {
      expect(await judgements.isJudged(ids)).toBe(true);
      expect(await judgements.isRejudged(asked)).toBe(true);
    }
  } finally {
    await copy.remove();
  }
});
