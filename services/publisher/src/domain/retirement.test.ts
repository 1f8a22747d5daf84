import { describe, expect, it } from 'vitest';
import { emptyState } from './policy-state.js';
import { goneVersion, retirable, unwantedVersions } from './retirement.js';

const since = new Map([['p-v1', 0]]);
const streams = { fence: 7, now: 100, streamMaxMs: 1_000 };
const report = (inFlight: number, fence = 7) => ({ fence, inFlight: new Map([['p-v1', inFlight]]) });

describe('retirable', () => {
  it('keeps a version until every gateway follows the fence and streams on it no more', () => {
    expect(retirable(since, { ...streams, reports: [report(0), report(1)] })).toEqual([]);
    expect(retirable(since, { ...streams, reports: [report(0), report(0, 6)] })).toEqual([]);
    expect(retirable(since, { ...streams, reports: [report(0), report(0)] })).toEqual(['p-v1']);
    expect(retirable(since, { ...streams, reports: [] })).toEqual(['p-v1']);
  });

  it('keeps a version for a gateway that cannot be asked no longer than the longest stream', () => {
    expect(retirable(since, { ...streams, reports: [undefined] })).toEqual([]);
    expect(retirable(since, { ...streams, reports: [undefined], now: 1_000 })).toEqual(['p-v1']);
  });
});

describe('versions that loaders hold', () => {
  const state = { ...emptyState('p'), line: ['p-v0', 'p-v1', 'p-v2', 'p-v3'] };

  it('finds held versions of this policy that are not the base and not in the load set', () => {
    const held = new Set(['p-v0', 'p-v1', 'p-v2', 'p-v3', 'p-v4', 'q-v1', 'foreign']);
    expect(unwantedVersions(state, held, new Map([['p-v1', 5]]), 9)).toEqual(
      new Map([
        ['p-v1', 5],
        ['p-v4', 9],
      ]),
    );
  });

  it('finds a stable version that no loader holds any more, once', () => {
    expect(goneVersion(state, new Set(['p-v0', 'p-v1', 'p-v2', 'p-v3']))).toBeUndefined();
    expect(goneVersion(state, new Set(['p-v2', 'p-v3']))).toBe('p-v1');
    expect(goneVersion({ ...state, retired: new Set(['p-v1']) }, new Set(['p-v2', 'p-v3']))).toBeUndefined();
  });
});
