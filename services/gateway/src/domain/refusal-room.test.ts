import { FakeClock } from '@backtalk/kit/testing';
import { expect, it } from 'vitest';
import { callerOf, keylessGrant } from './caller.js';
import { RefusalRoom } from './refusal-room.js';

const no = { train: false, source: 'request' };
const turnOf = (keyId: string, session: string, consent = no) => ({
  caller: callerOf('secret', keyId, keylessGrant, undefined),
  session,
  consent,
});

it('a session’s "no" is written once a day, and again where a yes came in between', async () => {
  const clock = new FakeClock();
  const room = new RefusalRoom(clock);
  const turn = turnOf('eve', 's1');
  expect(room.isNew(turn, true)).toBe(true);
  room.add(turn);
  expect(room.isNew(turn, true)).toBe(false);
  expect(room.isNew(turn, false)).toBe(true);
  expect(room.isNew(turnOf('eve', 's2'), true)).toBe(true);
  expect(room.isNew(turnOf('eve', 's3', { train: true, source: 'request' }), false)).toBe(false);
  await clock.advance(24 * 60 * 60 * 1000);
  expect(room.isNew(turn, true)).toBe(true);
});

it('a key’s refusals of a day end, whatever sessions they are of, and those of others do not', async () => {
  const clock = new FakeClock();
  const room = new RefusalRoom(clock);
  let written = 0;
  while (room.permits('eve') && written < 10_000) {
    room.add(turnOf('eve', `s${written}`));
    written += 1;
  }
  expect(written).toBe(4_000);
  expect(room.permits('ann')).toBe(true);
  await clock.advance(24 * 60 * 60 * 1000);
  expect(room.permits('eve')).toBe(true);
});
