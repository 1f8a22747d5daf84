import { describe, expect, it } from 'vitest';

import { candidate } from '../testing/candidates.js';
import { PendingTurns } from './pending-turns.js';

describe('turns that wait', () => {
  it('pending turns wait in their highest revision, in the place of their first', () => {
    const pending = new PendingTurns<string>();
    pending.add(candidate({ turn: 't', revision: 0, verdict: -1 }, 5, 50), 'first');
    pending.add(candidate({ turn: 't', revision: 2, verdict: 1 }, 9, 90), 'third');
    pending.add(candidate({ turn: 't', revision: 1, verdict: 0 }, 8, 80), 'second');
    expect(pending.candidates()).toHaveLength(1);
    expect(pending.candidates()[0]).toMatchObject({
      sequence: 5,
      waitingSinceMs: 50,
      judged: { revision: 2, verdict: 1 },
    });
  });

  it('a turn says what it asks for since it was first said, and not since a later revision carried that on', () => {
    const saidAt = (...hints: string[]) => {
      const pending = new PendingTurns<string>();
      for (const [revision, hint] of hints.entries())
        pending.add(candidate({ turn: 't', revision, hint }, 5, 50 + revision), '');
      return pending.candidates()[0]?.saidAtMs;
    };
    expect(saidAt('Use tables.')).toBe(50);
    expect(saidAt('Use tables.', 'Use tables.')).toBe(50);
    expect(saidAt('Use tables.', 'No tables.')).toBe(51);
  });

  it('pending turns hand back every message once, when the turn is taken', () => {
    const pending = new PendingTurns<string>();
    pending.add(candidate({ turn: 't', revision: 0 }, 5), 'first');
    pending.add(candidate({ turn: 't', revision: 1 }, 6), 'second');
    expect(pending.take(['t', 'unknown'])).toEqual(['first', 'second']);
    expect(pending.take(['t'])).toEqual([]);
    expect(pending.candidates()).toEqual([]);
  });

  it('pending turns are taken apart at a revision, and say who gave what each was judged by', () => {
    const pending = new PendingTurns<string>();
    pending.add(candidate({ turn: 't', revision: 0 }, 5), 'first');
    pending.add(candidate({ turn: 't', revision: 2, judged: { giver: 'ben' } }, 7), 'third');
    pending.add(candidate({ turn: 't', revision: 1, judged: { giver: 'ada' } }, 6), 'second');
    expect(pending.said().map(({ givers }) => [...givers].sort())).toEqual([
      [
        [0, ''],
        [1, 'ada'],
        [2, 'ben'],
      ],
    ]);
    expect(pending.takeApart('t', 1)).toEqual({ later: ['third', 'second'], earlier: ['first'] });
    expect(pending.candidates()).toEqual([]);
  });

  it('pending turns count a fact that is delivered twice once', () => {
    const pending = new PendingTurns<string>();
    pending.add(candidate({ turn: 't' }, 5), 'first delivery');
    pending.add(candidate({ turn: 't' }, 5), 'second delivery');
    expect(pending.candidates()).toHaveLength(1);
    expect(pending.take(['t'])).toEqual(['second delivery']);
  });
});
