import { describe, expect, it } from 'vitest';
import { readOutcome } from './outcome.js';

describe('readOutcome', () => {
  it('reads a score, and how many attempts there are where that is said', () => {
    expect(readOutcome({ score: 0.5, attempts: 8, user: 'ada' })).toEqual({
      outcome: { score: 0.5, attempts: 8, turns: 0 },
      user: 'ada',
    });
    expect(readOutcome({ score: -1, attempts: null })).toEqual({
      outcome: { score: -1, attempts: 0, turns: 0 },
      user: undefined,
    });
  });

  it.each([
    [{}, 'score'],
    [{ score: 1.01 }, 'score'],
    [{ score: -1.01 }, 'score'],
    [{ score: '1' }, 'score'],
    [{ score: Number.NaN }, 'score'],
    [{ score: 1, attempts: 0 }, 'attempts'],
    [{ score: 1, attempts: 1.5 }, 'attempts'],
    [{ score: 1, attempts: 1_025 }, 'attempts'],
    [{ score: 1, user: 5 }, 'user'],
  ])('an outcome %j is refused by the name of its parameter', (body, param) => {
    expect(() => readOutcome(body)).toThrow(param);
  });
});
