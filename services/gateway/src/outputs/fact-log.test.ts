import type { FactPublisher, FactReader } from '@backtalk/kit';
import { FakeClock } from '@backtalk/kit/testing';
import { BatchClosed } from '@backtalk/proto/facts';
import { expect, it } from 'vitest';
import { FactLog } from './fact-log.js';

const hourMs = 3_600_000;

/** A log of batches, each of which can be away. */
function startLog() {
  const read = { batches: 0, changes: 0, isAway: false };
  const last = () => {
    read.batches += 1;
    const message = BatchClosed.fromPartial({ policy: 'backtalk', number: read.batches, lessonsThrough: read.batches });
    return read.isAway ? Promise.reject(new Error('away')) : Promise.resolve({ message });
  };
  const none = async function* () {
    read.changes += 1;
    yield* await Promise.resolve([]);
  };
  const clock = new FakeClock();
  const outside: unknown = { last, read: none };
  return { read, clock, log: new FactLog(outside as FactPublisher, outside as FactReader, clock, hourMs) };
}

it('people who are answered in the same second share one reading of all lessons, and each reads what was said since', async () => {
  const { read, clock, log } = startLog();
  await Promise.all(['t', 't', 'u'].map((tenant) => log.lessonsOf('backtalk', tenant, 1_000)));
  await log.lessonsOf('backtalk', 't', 1_000);
  expect(read).toMatchObject({ batches: 1, changes: 4 });
  await clock.advance(1_000);
  await log.lessonsOf('backtalk', 't', 1_000);
  await log.lessonsOf('another', 't', 1_000);
  expect(read.batches).toBe(3);
});

it('a list of lessons that a person asks for is read anew, and a reading that failed is shared with nobody who comes later', async () => {
  const { read, log } = startLog();
  for (let asked = 1; asked <= 2; asked += 1) await log.lessonsOf('backtalk', 't');
  expect(read.batches).toBe(2);
  read.isAway = true;
  await expect(log.lessonsOf('backtalk', 't')).rejects.toMatchObject({ code: 'log_unavailable' });
  read.isAway = false;
  await log.lessonsOf('backtalk', 't', 1_000);
  expect(read.batches).toBe(4);
});
