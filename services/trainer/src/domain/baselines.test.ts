import { describe, expect, it } from 'vitest';

import { baselineOf, baselinesAfter } from './baselines.js';

describe('baselines', () => {
  it('baselines are 0 until an earlier batch spoke', () => {
    expect(baselineOf([], 'a')).toBe(0);
  });

  it('baselines are the mean of the verdicts of each user; silence does not count', () => {
    const first = baselinesAfter(
      [],
      [
        { user: 'a', verdict: 1 },
        { user: 'a', verdict: -1 },
        { user: 'a', verdict: 0 },
        { user: 'b', verdict: -1 },
      ],
    );
    expect([baselineOf(first, 'a'), baselineOf(first, 'b')]).toEqual([0, -1]);
    expect(baselineOf(baselinesAfter(first, [{ user: 'b', verdict: 1 }]), 'b')).toBe(0);
  });

  it('baselines follow a user whose mind has changed', () => {
    const long = baselinesAfter(
      [],
      Array.from({ length: 5_000 }, () => ({ user: 'a', verdict: -1 })),
    );
    const turned = baselinesAfter(
      long,
      Array.from({ length: 256 }, () => ({ user: 'a', verdict: 1 })),
    );
    expect(baselineOf(turned, 'a')).toBeGreaterThan(0.5);
  });

  it('baselines stay bounded: the user who has been silent for longest is forgotten', () => {
    const users = Array.from({ length: 2_001 }, (_, n) => ({ user: `u${n}`, verdict: 1 }));
    const kept = baselinesAfter([], users);
    expect(kept).toHaveLength(2_000);
    expect(baselineOf(kept, 'u0')).toBe(0);
    expect(baselineOf(kept, 'u2000')).toBe(1);
  });
});
