import { describe, expect, it } from 'vitest';
import { jsonOf, tableOf, written, type Outcome } from './report.js';

const surroundings = { cpu: 'Some CPU', cores: 2, node: '20.20.2', loadBefore: 0.5, loadAfter: 1.5 };
const cost: Outcome = {
  benchmark: 'gateway',
  seconds: 61.2,
  failure: '',
  notes: ['with capture'],
  figures: [
    { name: 'CPU a token', unit: 'µs', values: [50, 40, 44], aim: { atMost: 45 } },
    { name: 'requests', unit: '/s', values: [3_000.4], aim: { atLeast: 3_500 } },
  ],
};
const broken: Outcome = { benchmark: 'swap', seconds: 1, figures: [], notes: [], failure: 'no judge' };

describe('the report', () => {
  it('gives median, range, runs and aim of every figure', () => {
    const [about, , , , first = '', second = ''] = tableOf([cost], surroundings);
    expect(about).toBe('Some CPU · 2 cores · Node 20.20.2 · load average 0.5 before, 1.5 after');
    expect(first.split(/ {2,}/)).toEqual(['gateway', 'CPU a token', '44 µs', '40 – 50', '3', '≤ 45', 'met']);
    expect(second.split(/ {2,}/)).toEqual(['gateway', 'requests', '3000 /s', '3000 – 3000', '1', '≥ 3500', 'missed']);
  });

  it('names a benchmark that could not be run, and why, beside those that could', () => {
    const text = tableOf([broken, cost], surroundings).join('\n');
    expect(text).toContain('swap       could not be run');
    expect(text).toContain('could not be run: no judge');
    expect(text).toContain('44 µs');
  });

  it('the report as JSON is the same', () => {
    const { benchmarks, cores } = JSON.parse(jsonOf([cost, broken], surroundings)) as {
      benchmarks: { figures: object[]; failure: string }[];
      cores: number;
    };
    expect(cores).toBe(2);
    expect(benchmarks[0]?.figures[0]).toMatchObject({ median: 44, least: 40, most: 50, met: true });
    expect(benchmarks[1]).toMatchObject({ figures: [], failure: 'no judge' });
  });

  it('writes numbers with three digits that count', () => {
    expect([1.234, 12.34, 123.4, 12, Number.NaN].map(written)).toEqual(['1.23', '12.3', '123', '12', '?']);
  });
});
