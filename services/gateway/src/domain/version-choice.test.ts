import { Routes } from '@backtalk/proto/weights';
import { describe, expect, it } from 'vitest';
import { chooseVersion, isNewer, namedModel } from './version-choice.js';

const routes = (shares: Record<string, number>, fence = 1) =>
  Routes.fromPartial({
    policy: 'backtalk',
    fence,
    routes: Object.entries(shares).map(([version, share]) => ({ version, share })),
  });
const choose = (given: Routes | undefined, who: string) => chooseVersion(given, 'backtalk', 'secret', who);

describe('chooseVersion', () => {
  it('the chosen version is the base until there are routes', () => {
    expect(choose(undefined, 'a')).toBe('backtalk-v0');
    expect(choose(routes({}), 'a')).toBe('backtalk-v0');
  });

  it('the chosen version stays the same for one key and session, and sessions divide by the shares', () => {
    const given = routes({ 'backtalk-v2': 0.9, 'backtalk-v3': 0.1 });
    const chosen = Array.from({ length: 2000 }, (_, index) => choose(given, `key\nsession-${index}`));
    expect(choose(given, 'key\nsession-7')).toBe(chosen[7]);
    const share = chosen.filter((version) => version === 'backtalk-v3').length / chosen.length;
    expect(share).toBeGreaterThan(0.07);
    expect(share).toBeLessThan(0.13);
  });

  it('leaves out versions without a share', () => {
    expect(choose(routes({ 'backtalk-v2': 0, 'backtalk-v3': 1 }), 'a')).toBe('backtalk-v3');
  });
});

describe('isNewer', () => {
  it('takes the same or a later fence, and refuses an earlier one', () => {
    expect(isNewer(routes({}, 5), routes({}, 4))).toBe(true);
    expect(isNewer(routes({}, 4), routes({}, 4))).toBe(true);
    expect(isNewer(routes({}, 3), routes({}, 4))).toBe(false);
    expect(isNewer(routes({}, 3), undefined)).toBe(true);
  });
});

describe('namedModel', () => {
  it('tells an alias from a pinned version and from an unknown name', () => {
    expect(namedModel('backtalk', ['backtalk'])).toEqual({ kind: 'routed', policy: 'backtalk' });
    expect(namedModel('backtalk-v12', ['backtalk'])).toEqual({
      kind: 'pinned',
      policy: 'backtalk',
      version: 'backtalk-v12',
    });
    for (const name of ['gpt-4', 'backtalk-v', 'backtalk-v01', 'other-v1', '']) {
      expect(namedModel(name, ['backtalk'])).toBeUndefined();
    }
  });
});
