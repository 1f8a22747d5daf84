import { describe, expect, it } from 'vitest';
import type { Row, UnitResult } from './result.js';
import { signTest, targetsOf } from './targets.js';

const row = (of: string, block: string, step: number, headline: number, reference?: Row['reference']): Row => ({
  of,
  block,
  step,
  name: block === '' && step === 0 ? 'base' : `backtalk-v${String(step)}`,
  scores: { obeys: headline, hit: 1, headline, empty: 0, looping: 0, echo: 0 },
  reference,
});
const told = (of: string, headline: number): Row => ({ ...row(of, '', 0, headline), name: 'base shown the wish' });
const result = (part: string, name: string, rows: Row[]): UnitResult => ({
  part,
  name,
  seed: 1,
  rows,
  steps: [],
  lessons: [],
  talk: [],
  answers: [],
  minutes: 1,
  load: [0, 0],
  processor: '2 × a processor',
  day: '2026-11-22',
  stopped: false,
});
const alone = result('a', 'one', [row('one', '', 0, 0), told('one', 0.5), row('one', 'one', 8, 0.45)]);

function casesOf(aim: string, results: readonly UnitResult[]): readonly (readonly [string, boolean])[] {
  const found = targetsOf(results).find((target) => target.aim.includes(aim));
  return found?.cases.map(({ value, isMet }) => [value, isMet] as const) ?? [];
}

describe('targets', () => {
  it('a wish alone is held against the base shown it, where it qualifies', () => {
    expect(casesOf('qualified', [alone])).toEqual([['0.90', true]]);
    const short = result('a', 'one', [row('one', '', 0, 0), told('one', 0.6), row('one', 'one', 8, 0.3)]);
    expect(casesOf('qualified', [short])).toEqual([['0.50', false]]);
    const known = result('a', 'one', [row('one', '', 0, 0.2), told('one', 0.6), row('one', 'one', 8, 0.6)]);
    const deaf = result('a', 'two', [row('two', '', 0, 0), told('two', 0.3), row('two', 'two', 8, 0.3)]);
    expect(casesOf('qualified', [known, deaf])).toEqual([]);
  });

  it('wishes in turn are held against their own best, the base’s sentences and their twins', () => {
    const first = row('one', '', 0, 0, { nll: 2, skill: 1, twins: [true, true, true, false] });
    const last = row('two', 'all together', 9, 0.4, { nll: 2.5, skill: 0.5, twins: [false, true, true, true] });
    const turns = result('b', 'one+two', [
      first,
      told('one', 0.5),
      row('one', 'one', 3, 0.5),
      row('one', 'two', 6, 0.3),
      last,
    ]);
    expect(casesOf('own best', [turns])).toEqual([
      ['0.60', false],
      // What came with the last measurement alone was never kept.
      ['nothing to keep', false],
    ]);
    expect(casesOf('fixed sentences', [turns])).toEqual([['+0.50', false]]);
    expect(casesOf('twin', [turns])).toEqual([['1 lost, 1 won, p 0.75', true]]);
  });

  it('a control is held against the gain of the right teacher', () => {
    const control = (headline: number) => result('e', 'one, no teacher', [row('one', 'one', 8, headline)]);
    expect(casesOf('control', [alone, control(0.1)])).toEqual([['0.22', true]]);
    expect(casesOf('control', [alone, control(0.3)])).toEqual([['0.67', false]]);
  });

  it('what hostile feedback leaves is held against the gain without it', () => {
    const poisoned = (headline: number) => result('g', 'one', [row('one', 'one', 8, headline)]);
    expect(casesOf('hostile', [alone, poisoned(0.4)])).toEqual([['0.89', true]]);
    expect(casesOf('hostile', [alone, poisoned(0.3)])).toEqual([['0.67', false]]);
  });

  it('only a run of fifty versions says how far a wish falls below its best', () => {
    expect(casesOf('below its best', [alone])).toEqual([]);
    const long = result('a', 'one', [
      row('one', 'one', 20, 0.5),
      row('one', 'one', 40, 0.3),
      row('one', 'one', 50, 0.5),
    ]);
    expect(casesOf('below its best', [long])).toEqual([['0.20', false]]);
  });
});

describe('signTest', () => {
  it('gives the chance that so many of those that changed, or more, were lost', () => {
    expect(signTest(0, 0)).toBe(1);
    expect(signTest(5, 0)).toBeCloseTo(1 / 32);
    expect(signTest(3, 1)).toBeCloseTo(5 / 16);
    expect(signTest(0, 4)).toBe(1);
  });
});
