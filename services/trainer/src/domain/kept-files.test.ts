import { WeightsStaged, WeightsStaged_Stage, WeightsTrained } from '@backtalk/proto/facts';
import { WeightsManifest } from '@backtalk/proto/weights';
import { describe, expect, it } from 'vitest';

import { keeping, sweepable } from './kept-files.js';
import { VersionLine } from './version-line.js';

const manifest = (n: number): WeightsManifest =>
  WeightsManifest.fromPartial({
    adapter: [
      { name: 'adapter_model.safetensors', digest: `adapter${n}` },
      // The same file for other policies of the base.
      { name: 'adapter_config.json', digest: `config${Math.floor(n / 12)}` },
    ],
    trainingState: [
      { name: 'optimizer.safetensors', digest: `state${n}` },
      { name: 'average.safetensors', digest: 'shared' },
      { name: 'remote.json', digest: `path${n}` },
    ],
  });

function swept(count: number, burned: readonly number[] = [], youngestMs = Infinity): string[] {
  const line = new VersionLine('p');
  const manifests = new Map<string, WeightsManifest>();
  for (let n = 1; n <= count; n += 1) {
    line.trained(WeightsTrained.fromPartial({ version: `p-v${n}`, parent: `p-v${n - 1}` }), n);
    const stage = burned.includes(n) ? WeightsStaged_Stage.STAGE_BURNED : WeightsStaged_Stage.STAGE_RETIRED;
    line.staged(WeightsStaged.fromPartial({ version: `p-v${n}`, stage }), 1_000 + n);
    manifests.set(`p-v${n}`, manifest(n));
  }
  return sweepable(keeping(line, 'p'), manifests, youngestMs);
}

describe('files of old versions', () => {
  it('files stay for the last ten adapters and the last three optimiser states', () => {
    expect(swept(10).filter((digest) => digest.startsWith('adapter'))).toEqual([]);
    expect(swept(12).filter((digest) => digest.startsWith('adapter'))).toEqual(['adapter1', 'adapter2']);
    expect(swept(40).filter((digest) => digest.startsWith('config'))).toEqual([]);
    expect(swept(5)).toEqual(['state1', 'state2']);
  });

  it('files stay for every fiftieth optimiser state', () => {
    const gone = swept(60);
    expect(gone).toContain('state49');
    expect(gone).not.toContain('state50');
    expect(gone).toContain('adapter50');
  });

  it('files stay while they are younger than the grace', () => {
    expect(swept(12, [], 1)).toEqual(['adapter1', 'state1']);
  });

  it('files stay for the version that the next step starts from, however many were burned since', () => {
    const gone = swept(16, [3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16]);
    expect(gone).not.toContain('adapter2');
    expect(gone).not.toContain('state2');
  });

  it('files stay that say where a training service keeps a state, however old their version is', () => {
    expect(swept(60).filter((digest) => digest.startsWith('path'))).toEqual([]);
  });

  it('files stay while any kept version refers to them', () => {
    expect(swept(60)).not.toContain('shared');
  });
});
