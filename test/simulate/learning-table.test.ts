import { describe, expect, it } from 'vitest';
import { inParallel } from './in-parallel.js';
import { cells } from './learning-table.js';

const scores = { obeys: 0.5, hit: 0.25, headline: 0.125, empty: 0, looping: 0, echo: 1 };

describe('a learning run', () => {
  it('shows shares with two digits, and no KL where none was measured', () => {
    const row = { name: 'backtalk-v1', kind: 'version', sessions: 9, scores, kl: undefined } as const;
    expect(cells(row)).toEqual(['backtalk-v1', '9', '0.50', '0.25', '0.13', '', '0.00', '0.00', '1.00']);
    expect(cells({ ...row, kind: 'comparison', kl: 1.25 })[1]).toBe('');
  });

  it('keeps the order of results, never works on more at once than it may, and ends with the first failure', async () => {
    let atWork = 0;
    let most = 0;
    const work = async (item: number) => {
      atWork += 1;
      most = Math.max(most, atWork);
      await Promise.resolve();
      atWork -= 1;
      return item * 2;
    };
    expect(await inParallel([1, 2, 3, 4, 5], 2, work)).toEqual([2, 4, 6, 8, 10]);
    expect(most).toBe(2);
    await expect(inParallel([1, 2], 2, () => Promise.reject(new RangeError('no')))).rejects.toThrow('no');
  });
});
