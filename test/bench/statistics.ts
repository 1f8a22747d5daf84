// Medians, ranges and percentiles. Pure.
import type { Aim } from './benchmark.js';

export interface Summary {
  readonly median: number;
  readonly least: number;
  readonly most: number;
}

/** The smallest value that at least this share of the values do not exceed; NaN of nothing. */
export function percentile(values: readonly number[], share: number): number {
  const sorted = [...values].sort((one, other) => one - other);
  return sorted[Math.max(0, Math.ceil(share * sorted.length) - 1)] ?? Number.NaN;
}

export function median(values: readonly number[]): number {
  const sorted = [...values].sort((one, other) => one - other);
  const middle = sorted.length / 2;
  if (sorted.length % 2 === 1) return sorted[Math.floor(middle)] ?? Number.NaN;
  return ((sorted[middle - 1] ?? Number.NaN) + (sorted[middle] ?? Number.NaN)) / 2;
}

export function summaryOf(values: readonly number[]): Summary {
  return { median: median(values), least: Math.min(...values), most: Math.max(...values) };
}

export function sum(values: readonly number[]): number {
  return values.reduce((total, value) => total + value, 0);
}

export function isMet(aim: Aim, value: number): boolean {
  return 'atMost' in aim ? value <= aim.atMost : value >= aim.atLeast;
}
