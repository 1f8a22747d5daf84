import { BatchClosed, WeightsTrained } from '@backtalk/proto/facts';
import { describe, expect, it } from 'vitest';
import { pullOf } from './lesson-pull.js';

const batch = (number: number, samples: Record<string, string[]>) =>
  BatchClosed.fromPartial({ number, samples: Object.entries(samples).map(([turn, lessons]) => ({ turn, lessons })) });
const trained = (of: number, shares: Record<string, number>) =>
  WeightsTrained.fromPartial({
    batch: of,
    report: { samples: Object.entries(shares).map(([turn, gradientShare]) => ({ turn, gradientShare })) },
  });

describe('how much of a step was for a lesson’s sake', () => {
  it('a lesson has what came from the samples whose teacher was shown it, and several have the same sample', () => {
    const batches = [batch(1, { a: ['tables'], b: ['tables', 'metric'], c: [] }), batch(2, { d: ['metric'] })];
    const reports = [trained(1, { a: 0.5, b: 0.25, c: 0.25 }), trained(2, { d: 1 })];
    expect([...pullOf('tables', batches, reports)]).toEqual([[1, 0.75]]);
    expect([...pullOf('metric', batches, reports)]).toEqual([
      [1, 0.25],
      [2, 1],
    ]);
  });

  it('a batch that was given up, and a report that says nothing of gradients, have no share', () => {
    const batches = [batch(1, { a: ['tables'] }), batch(2, { b: ['tables'] })];
    expect(pullOf('tables', batches, [trained(2, { b: 0 })]).size).toBe(0);
  });
});
