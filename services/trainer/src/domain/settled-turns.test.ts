import { BatchClosed } from '@backtalk/proto/facts';
import { describe, expect, it } from 'vitest';

import { SettledTurns } from './settled-turns.js';

const batch = (number: number, turns: readonly string[], marked = true): BatchClosed =>
  BatchClosed.fromPartial({ number, marked, settled: turns.map((turn) => ({ turn })) });

describe('settled turns', () => {
  it('settled turns are those that some batch has taken or settled', () => {
    const settled = new SettledTurns();
    settled.add(BatchClosed.fromPartial({ samples: [{ turn: 'taken' }], settled: [{ turn: 'settled' }] }));
    expect([settled.has('taken'), settled.has('settled'), settled.has('open')]).toEqual([true, true, false]);
  });

  it('settled turns of the newest batches are held in memory, and it is known from which batch on', () => {
    const settled = new SettledTurns(2);
    settled.add(batch(1, ['old', 'older']));
    settled.add(batch(2, ['new']));
    expect([settled.has('old'), settled.has('new'), settled.remembers(1), settled.remembers(2)]).toEqual([
      false,
      true,
      false,
      true,
    ]);
  });

  it('settled turns of batches from before there were marks are never forgotten', () => {
    const settled = new SettledTurns(1);
    settled.add(batch(1, ['unmarked'], false));
    settled.add(batch(2, ['a', 'b']));
    settled.add(batch(3, ['c']));
    expect([settled.has('unmarked'), settled.has('a'), settled.has('c')]).toEqual([true, false, true]);
  });
});
