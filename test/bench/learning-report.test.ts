import { describe, expect, it } from 'vitest';
import type { SeedRun } from './learning-events.js';
import { judgeRun, largestFall } from './learning-report.js';

const scores = (headline: number) => ({ obeys: 1, hit: 1, headline, empty: 0.01, looping: 0.02, echo: 0 });

function run(headlines: readonly number[]): SeedRun {
  const version = (headline: number, index: number) =>
    ({
      event: 'measured',
      name: `backtalk-v${String(index + 1)}`,
      kind: 'version',
      sessions: 0,
      scores: scores(headline),
    }) as const;
  const hinted = {
    event: 'measured',
    name: 'base shown the hint',
    kind: 'comparison',
    sessions: 0,
    scores: scores(0.5),
  } as const;
  return { user: 'short', seed: '1', rows: [hinted, ...headlines.map(version)], answers: [], minutes: 1 };
}

describe('the target of a learning run', () => {
  it('compares the mean of the last three versions with the base shown the hint', () => {
    const figures = judgeRun(run([0.1, 0.3, 0.4, 0.5]));
    expect(figures.lastThree).toBeCloseTo(0.4);
    expect(figures.ratio).toBeCloseTo(0.8);
    expect(figures.degenerate).toBeCloseTo(0.03);
  });

  it('sees a fall of two neighbours below the best two before them', () => {
    expect(largestFall([0.1, 0.5, 0.5, 0.2, 0.2])).toBeCloseTo(0.3);
    expect(largestFall([0.1, 0.5, 0.1, 0.5])).toBeCloseTo(0);
    expect(largestFall([0.4])).toBe(0);
  });
});
