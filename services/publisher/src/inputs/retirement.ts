// Takes versions off the loaders that nothing needs any more. In: a timer. Out: Retire calls, and the fact that a version is
// retired.
import { WeightsStaged_Stage } from '@backtalk/proto/facts';
import { goneVersion, retirable, unwantedVersions } from '../domain/retirement.js';
import type { ReleaseParts } from './swap.js';

export class Retirement {
  /** When each held version was first seen outside the load set. */
  private unwantedSince: ReadonlyMap<string, number> = new Map();

  constructor(
    private readonly parts: ReleaseParts,
    private readonly streamMaxMs: number,
  ) {}

  async sweep(): Promise<void> {
    const { policy, loaders, gateways, chain, clock, assertLeading } = this.parts;
    const all = loaders.all();
    const held = new Set(all.flatMap(({ engine }) => engine.versions));
    const now = clock.now();
    this.unwantedSince = unwantedVersions(chain.state, held, this.unwantedSince, now);
    if (this.unwantedSince.size > 0) {
      const reports = await gateways.reports(policy);
      assertLeading();
      const open = { reports, fence: chain.state.fence, now, streamMaxMs: this.streamMaxMs };
      for (const version of retirable(this.unwantedSince, open)) {
        const holders = all.filter(({ engine }) => engine.versions.includes(version));
        // Decided anew after each wait: a rollback may want it again by now.
        if (!unwantedVersions(chain.state, held, this.unwantedSince, now).has(version)) continue;
        await loaders.retire(holders, version, chain.state.fence);
        assertLeading();
      }
    }
    const { state } = chain;
    const gone = goneVersion(state, held);
    if (gone === undefined) return;
    const stage = WeightsStaged_Stage.STAGE_RETIRED;
    const manifestDigest = state.digests.get(gone) ?? '';
    await chain.append(state, { version: gone, stage, manifestDigest, why: 'no engine holds it any more' });
  }
}
