import { FakeClock } from '@backtalk/kit/testing';
import { expect, it } from 'vitest';
import { SearchRate } from './search-rate.js';

it('a key searches the log a few times in ten seconds, whatever others search for', async () => {
  const clock = new FakeClock();
  const rate = new SearchRate(clock);
  const asks = (keyId: string, count: number) => Array.from({ length: count }, () => rate.permits(keyId));
  expect(asks('eve', 5)).toEqual([true, true, true, false, false]);
  expect(asks('ann', 3)).toEqual([true, true, true]);
  await clock.advance(10_000);
  expect(asks('eve', 1)).toEqual([true]);
});
