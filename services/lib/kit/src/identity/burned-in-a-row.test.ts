import { describe, expect, it } from 'vitest';
import { burnedInARow, givenUpInARow, isHeld, type VersionFate } from './burned-in-a-row.js';

const nothing = { resumedAfter: 0, lessonsChangedAt: 0 };

/** Version n is made from batch n. */
function fates(...of: readonly ('burned' | 'served' | 'undecided' | 'rolled back' | 'of a burned parent')[]) {
  return of.map((fate, index): VersionFate => {
    const version = `p-v${index + 1}`;
    const parent = fate === 'of a burned parent' ? `p-v${index}` : 'p-v0';
    const isBurned = fate !== 'served' && fate !== 'undecided';
    return { version, parent, batch: index + 1, isBurned, hasServed: fate === 'served' || fate === 'rolled back' };
  });
}

describe('versions burned in a row', () => {
  it.each([
    ['none', fates(), []],
    ['those since the newest that served', fates('burned', 'served', 'burned', 'burned'), ['p-v3', 'p-v4']],
    ['none where the newest served', fates('burned', 'burned', 'burned', 'served'), []],
    [
      'those before one that is not decided',
      fates('burned', 'burned', 'burned', 'undecided'),
      ['p-v1', 'p-v2', 'p-v3'],
    ],
    ['those since one that served and was rolled back', fates('burned', 'rolled back', 'burned'), ['p-v3']],
    ['none that only went with its parent', fates('rolled back', 'of a burned parent', 'burned'), ['p-v3']],
  ])('counts %s', (_, given, row) => {
    expect(burnedInARow('p', given, nothing)).toEqual(row);
  });

  it('holds from three on', () => {
    expect(isHeld(burnedInARow('p', fates('burned', 'burned'), nothing))).toBe(false);
    expect(isHeld(burnedInARow('p', fates('burned', 'burned', 'burned'), nothing))).toBe(true);
  });

  it('counts anew after an operator resumed, and after the lessons changed', () => {
    const given = fates('burned', 'burned', 'burned', 'burned');
    expect(burnedInARow('p', given, { ...nothing, resumedAfter: 3 })).toEqual(['p-v4']);
    expect(burnedInARow('p', given, { ...nothing, lessonsChangedAt: 4 })).toEqual(['p-v4']);
    expect(burnedInARow('p', given, { ...nothing, lessonsChangedAt: 5 })).toEqual([]);
  });
});

describe('batches that were given up in a row', () => {
  const closed = (...whys: readonly string[]) => whys.map((why, at) => ({ number: at + 1, why }));
  const numbers = (whys: readonly string[], resumedAfterBatch = 0) =>
    givenUpInARow(closed(...whys), resumedAfterBatch).map(({ number }) => number);

  it('count where their step was skipped or failed, whatever is settled between', () => {
    expect(numbers(['full', 'step_skipped', 'settled', 'timeout', 'step_failed'])).toEqual([2, 5]);
  });

  it('count for nothing where an operator gave them up, or their parent was burned', () => {
    expect(numbers(['full', 'abandoned', 'full', 'burned_parent'])).toEqual([]);
  });

  it('count for nothing where they repeated a batch of before', () => {
    const repeats = closed('step_failed', 'step_failed').map((fact, at) => ({ ...fact, repeats: at }));
    expect(givenUpInARow(repeats, 0).map(({ number }) => number)).toEqual([1]);
  });

  it('count anew after an operator resumed, and after the lessons changed', () => {
    const whys = ['step_skipped', 'step_failed', 'step_failed'];
    expect(numbers(whys, 2)).toEqual([3]);
    expect(numbers([...whys, 'lessons', 'step_failed'])).toEqual([5]);
    expect(isHeld(givenUpInARow(closed(...whys), 0))).toBe(true);
  });
});
