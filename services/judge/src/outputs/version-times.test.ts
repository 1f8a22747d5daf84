import type { KvBucket, KvChange } from '@backtalk/kit';
import { Routes } from '@backtalk/proto/weights';
import { describe, expect, it } from 'vitest';
import { VersionTimes } from './version-times.js';

describe('how far a policy has moved on', () => {
  it('counts versions that began to answer after a moment, and no other change of the routes', async () => {
    let tell: (change: KvChange<Routes>) => void = () => undefined;
    const bucket: Pick<KvBucket<Routes>, 'watch'> = {
      watch: (_keys, onChange) => {
        tell = onChange;
        return Promise.resolve(() => undefined);
      },
    };
    const times = new VersionTimes(bucket);
    await times.start();
    expect(times.since('backtalk', 0)).toBe(0);
    const stable = (version: string, timeMs: number, policy = 'backtalk') => {
      const value = Routes.fromPartial({ policy, stable: version });
      tell({ kind: 'put', key: policy, value, revision: timeMs, timeMs });
    };
    stable('backtalk-v1', 1_000);
    stable('backtalk-v2', 2_000);
    stable('backtalk-v2', 2_500);
    stable('other-v1', 2_600, 'other');
    stable('backtalk-v3', 3_000);
    expect(times.since('backtalk', 500)).toBe(3);
    expect(times.since('backtalk', 2_000)).toBe(1);
    expect(times.since('backtalk', 3_000)).toBe(0);
    expect(times.since('unknown', 0)).toBe(0);
    expect(times.back('backtalk', 'backtalk-v1')).toBe(2);
    expect(times.back('backtalk', '')).toBe(0);
    expect(times.back('unknown', 'unknown-v1')).toBe(0);
  });
});
