// Takes versions off the loaders that nobody needs any more.
//
// In: a timer. Out: Retire calls, and the fact that a version is retired. A version goes when it is not in the load set
// and no gateway reports a stream on it; or, where a gateway cannot be asked, when the longest stream is over.
import type { Clock } from '@backtalk/kit';
import { WeightsStaged_Stage } from '@backtalk/proto/facts';
import { retirable } from '../domain/retirable.js';
import { baseVersionOf, numberOf } from '../domain/versions.js';
import type { Announcer } from '../outputs/announcer.js';
import type { Gateways } from '../outputs/gateways.js';
import type { Loaders } from '../outputs/loaders.js';
import type { StagedChain } from '../outputs/staged-chain.js';

export interface RetirementParts {
  readonly policy: string;
  readonly chain: StagedChain;
  readonly loaders: Loaders;
  readonly gateways: Gateways;
  readonly announcer: Announcer;
  readonly clock: Clock;
  readonly streamMaxMs: number;
}

export class Retirement {
  /** When each held version was first seen outside the load set. */
  private unwantedSince: ReadonlyMap<string, number> = new Map();

  constructor(private readonly parts: RetirementParts) {}

  async sweep(): Promise<void> {
    const { loaders, gateways, announcer, chain, clock, policy, streamMaxMs } = this.parts;
    const all = loaders.all();
    const held = new Set(all.flatMap(({ engine }) => engine.versions));
    const wanted = new Set([...announcer.wanted(), baseVersionOf(policy)]);
    const unwanted = [...held].filter((version) => !wanted.has(version) && numberOf(policy, version) !== undefined);
    const now = clock.now();
    this.unwantedSince = new Map(unwanted.map((version) => [version, this.unwantedSince.get(version) ?? now]));
    if (unwanted.length > 0) {
      const reports = await gateways.reports();
      const free = retirable({ since: this.unwantedSince, reports, fence: chain.state.fence, now, streamMaxMs });
      for (const version of free)
        await loaders.retire(
          all.filter(({ engine }) => engine.versions.includes(version)),
          version,
        );
    }
    await this.markRetired(held, wanted);
  }

  /** Once no loader holds a version that was stable, the chain says so: a rollback to it has to load it again. */
  private async markRetired(held: ReadonlySet<string>, wanted: ReadonlySet<string>): Promise<void> {
    const { chain } = this.parts;
    const gone = chain.state.line.find(
      (version) => !held.has(version) && !wanted.has(version) && !chain.state.retired.has(version),
    );
    if (gone === undefined) return;
    const { state } = chain;
    const manifestDigest = state.digests.get(gone) ?? '';
    await chain.append(state, {
      version: gone,
      stage: WeightsStaged_Stage.STAGE_RETIRED,
      manifestDigest,
      why: 'no engine holds it any more',
    });
  }
}
