import { BatchClosed } from '@backtalk/proto/facts';
import { describe, expect, it } from 'vitest';

import { clocksDifferMs, SettledTurns } from './settled-turns.js';

describe('settled turns', () => {
  it('settled turns are those that some batch has taken or settled', () => {
    const settled = new SettledTurns();
    settled.add(BatchClosed.fromPartial({ samples: [{ turn: 'taken' }], settled: [{ turn: 'settled' }] }), 0);
    expect([settled.has('taken'), settled.has('settled'), settled.has('open')]).toEqual([true, true, false]);
  });

  it('settled turns are forgotten only when the ack floor vouches for them', () => {
    const settled = new SettledTurns();
    settled.add(BatchClosed.fromPartial({ samples: [{ turn: 'old' }] }), 1_000);
    settled.forgetBefore(1_000 + clocksDifferMs);
    expect(settled.has('old')).toBe(true);
    settled.forgetBefore(1_001 + clocksDifferMs);
    expect(settled.has('old')).toBe(false);
  });

  it('settled turns are not even remembered when the floor stands above them already', () => {
    const settled = new SettledTurns();
    const floorMs = 2_000 + clocksDifferMs;
    settled.add(BatchClosed.fromPartial({ samples: [{ turn: 'old' }] }), 1_999, floorMs);
    settled.add(BatchClosed.fromPartial({ samples: [{ turn: 'new' }] }), 2_000, floorMs);
    expect([settled.size, settled.has('new')]).toEqual([1, true]);
  });
});
