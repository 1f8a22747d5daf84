import { describe, expect, it } from 'vitest';

import { crowdedOut, type HeldTurn } from './crowding.js';

const recipe = { waitMs: 1_000 };
const dayMs = 86_400_000;

function held(count: number, shape: { readonly messages?: number; readonly reason?: string } = {}): HeldTurn[] {
  const { messages = 1, reason } = shape;
  return Array.from({ length: count }, (_, n) => {
    return { candidate: { turn: `t${n}`, sequence: n, waitingSinceMs: n, reason }, messages };
  });
}

describe('turns that no batch takes', () => {
  it('keep their places while there is room, however old they are', () => {
    expect(crowdedOut(held(14), recipe, dayMs * 365, 20)).toEqual({ turns: [], untilMs: undefined });
  });

  it('give half of the places, oldest first, once three quarters are taken', () => {
    const { turns } = crowdedOut(held(15).toReversed(), recipe, dayMs, 20);
    expect(turns).toEqual(['t0', 't1', 't2', 't3', 't4']);
  });

  it('count with each revision that is held', () => {
    expect(crowdedOut(held(8, { messages: 2 }), recipe, dayMs, 20).turns).toEqual(['t0', 't1', 't2']);
  });

  it('keep their places until a batch of theirs would have closed, and a day at most', () => {
    expect(crowdedOut(held(15), recipe, 1_001, 20)).toEqual({ turns: ['t0', 't1'], untilMs: 1_002 });
    const year = { waitMs: dayMs * 365 };
    expect(crowdedOut(held(15), year, dayMs - 1, 20)).toEqual({ turns: [], untilMs: dayMs });
    expect(crowdedOut(held(15), year, dayMs, 20).turns).toEqual(['t0']);
  });

  it('a turn that is settled for another reason is not named: it gives its place by itself', () => {
    expect(crowdedOut(held(15, { reason: 'stale' }), recipe, dayMs, 20).turns).toEqual([]);
  });
});
