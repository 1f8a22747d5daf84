import { describe, expect, it } from 'vitest';
import { planReconcile, RetryTimes, type ReconcileInput } from './reconcile.js';

const wanted = [
  { version: 'backtalk-v0', manifestDigest: '' },
  { version: 'backtalk-v1', manifestDigest: 'a' },
  { version: 'backtalk-v2', manifestDigest: 'b' },
];
const input: ReconcileInput = { wanted, held: [], unchecked: [], unwantedSince: new Map(), now: 1_000, graceMs: 100 };

describe('planReconcile', () => {
  it('loads what is missing, but never the base', () => {
    expect(planReconcile({ ...input, held: ['backtalk-v1'] }).load).toEqual([wanted[2]]);
  });

  it('loads again what an earlier process left on the engine, and unloads what is not wanted of it', () => {
    const plan = planReconcile({ ...input, wanted: wanted.slice(1), unchecked: ['backtalk-v1', 'old'], graceMs: 0 });
    expect(plan.load).toEqual(wanted.slice(1));
    expect(plan.unload).toEqual(['old']);
  });

  it('keeps an unwanted version for the grace, counted from when it was first unwanted', () => {
    const first = planReconcile({ ...input, held: ['backtalk-v9'] });
    expect(first.unload).toEqual([]);
    const early = planReconcile({ ...input, held: ['backtalk-v9'], unwantedSince: first.unwantedSince, now: 1_099 });
    expect(early.unload).toEqual([]);
    const late = planReconcile({ ...input, held: ['backtalk-v9'], unwantedSince: early.unwantedSince, now: 1_100 });
    expect(late.unload).toEqual(['backtalk-v9']);
  });

  it('forgets the time of a version that is wanted again', () => {
    const unwantedSince = new Map([['backtalk-v1', 0]]);
    const plan = planReconcile({ ...input, held: ['backtalk-v1'], unwantedSince });
    expect(plan.unload).toEqual([]);
    expect(plan.unwantedSince.size).toBe(0);
  });
});

describe('RetryTimes', () => {
  it('waits longer from failure to failure, and longest after a refusal, unless a call asks again', () => {
    const times = new RetryTimes();
    expect(times.isDue('v1', 0)).toBe(true);
    times.failed('v1', 0, 'later');
    expect(times.isDue('v1', 999)).toBe(false);
    expect(times.isDue('v1', 1_000)).toBe(true);
    times.failed('v1', 1_000, 'later');
    expect(times.isDue('v1', 2_999)).toBe(false);
    times.failed('v1', 3_000, 'never');
    expect(times.isDue('v1', 32_999)).toBe(false);
    expect(times.isDue('v1', 33_000)).toBe(true);
    times.forget();
    expect(times.isDue('v1', 3_001)).toBe(true);
  });
});
