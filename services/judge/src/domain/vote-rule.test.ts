import { describe, expect, it } from 'vitest';
import { leftOut } from './vote-rule.js';

const fresh = { since: 0, back: 0 };
const always = { voteShare: 1, versionsBehind: 3 };

describe('votes', () => {
  it('votes are cast on every turn by default, and on a share of turns where that is asked', () => {
    const turns = Array.from({ length: 2_000 }, (_, at) => `turn_${String(at)}`);
    const without = (voteShare: number) =>
      turns.filter((turn) => leftOut(turn, fresh, { ...always, voteShare }) === 'share');
    expect(without(1)).toEqual([]);
    expect(without(0)).toEqual(turns);
    expect(without(0.2).length / turns.length).toBeCloseTo(0.8, 1);
    // A turn that gets votes at a small share gets them at a larger one.
    expect(without(0.2)).toEqual(expect.arrayContaining(without(0.5)));
  });

  it('leaves votes out once the policy has moved on', () => {
    expect(leftOut('turn', { since: 2, back: 3 }, always)).toBeUndefined();
    expect(leftOut('turn', { since: 3, back: 3 }, always)).toBe('behind');
    expect(leftOut('turn', { since: 0, back: 4 }, always)).toBe('behind');
    expect(leftOut('turn', { since: 99, back: 99 }, { ...always, versionsBehind: 0 })).toBeUndefined();
  });
});
