import { describe, expect, it } from 'vitest';
import { isMet, median, percentile, summaryOf } from './statistics.js';

describe('statistics', () => {
  it('the median of an even number of values lies between the two in the middle', () => {
    expect(median([4, 1, 3, 2])).toBe(2.5);
    expect(median([3, 1, 2])).toBe(2);
  });

  it('a percentile is a value that occurred', () => {
    const values = Array.from({ length: 100 }, (_, at) => 100 - at);
    expect(percentile(values, 0.5)).toBe(50);
    expect(percentile(values, 0.99)).toBe(99);
    expect(percentile([7], 0.99)).toBe(7);
  });

  it('a summary keeps the extremes', () => {
    expect(summaryOf([2, 9, 4])).toEqual({ median: 4, least: 2, most: 9 });
  });

  it('an aim is met at its bound', () => {
    expect(isMet({ atMost: 45 }, 45)).toBe(true);
    expect(isMet({ atLeast: 3_500 }, 3_499)).toBe(false);
  });
});
