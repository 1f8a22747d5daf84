// Makes loaders and gateways follow the chain: KV `load`, then KV `routes`, then Commit to every gateway. One at a time, and
// always with the newest state, so that an older value never overtakes a newer one. Only what has changed is written.
import { isBacktalkError, Mutex, versionNumber, type KvBucket, type Trace } from '@backtalk/kit';
import type { LoadSet, Routes } from '@backtalk/proto/weights';
import { loadSetOf, routesOf, stableOf, type PolicyState } from '../domain/policy-state.js';
import { publisherErrors } from '../errors.js';
import type { PublisherEvents } from '../events.js';
import type { Gateways } from './gateways.js';
import type { StagedChain } from './staged-chain.js';

type Reached = (step: 'routes_written' | 'committed') => void | Promise<void>;

export class Routing {
  private readonly mutex = new Mutex();

  constructor(
    private readonly chain: StagedChain,
    private readonly loads: KvBucket<LoadSet>,
    private readonly routes: KvBucket<Routes>,
    private readonly gateways: Gateways,
    private readonly events: PublisherEvents,
    private readonly assertLeading: () => void,
  ) {}

  /** True when it was something else before. */
  writeLoadSet(): Promise<boolean> {
    return this.mutex.run(() => this.writeLoad(this.chain.state));
  }

  /** Every gateway routes to the stable version, or will as soon as it reads the routes. */
  route(reached: Reached = () => undefined, trace?: Trace): Promise<{ milliseconds: number; gateways: number }> {
    return this.mutex.run(async () => {
      const { state } = this.chain;
      await this.writeRoutes(state);
      await reached('routes_written');
      const committed = await this.gateways.commit(routesOf(state), trace);
      this.events.routed(state.policy, { fence: state.fence, stable: stableNumber(state) }, committed.milliseconds);
      await reached('committed');
      await this.writeLoad(state);
      return committed;
    });
  }

  /** Mends what a stopped publisher left unwritten; does nothing where nothing is amiss. */
  converge(): Promise<void> {
    return this.mutex.run(async () => {
      const { state } = this.chain;
      const changed: string[] = [];
      if (await this.writeLoad(state)) changed.push('load');
      if (await this.writeRoutes(state)) changed.push('routes');
      if (changed.includes('routes')) await this.gateways.commit(routesOf(state));
      if (changed.length > 0)
        this.events.converged(state.policy, { fence: state.fence, stable: stableNumber(state) }, changed);
    });
  }

  private writeLoad(state: PolicyState): Promise<boolean> {
    return this.writeChange(this.loads, state.policy, loadSetOf(state));
  }

  private writeRoutes(state: PolicyState): Promise<boolean> {
    // A publisher that wrote a later fence knows more.
    return this.writeChange(this.routes, state.policy, routesOf(state), ({ fence }) => fence > state.fence);
  }

  /** Over what it has looked at, and over nothing else: of two publishers, the one that looked before the other wrote does not write. */
  private async writeChange<T>(
    bucket: KvBucket<T>,
    key: string,
    value: T,
    isNewer: (present: T) => boolean = () => false,
  ): Promise<boolean> {
    for (let looks = 1; ; looks += 1) {
      const present = await bucket.get(key);
      this.assertLeading();
      if (present !== undefined) {
        if (isNewer(present.value) || JSON.stringify(present.value) === JSON.stringify(value)) return false;
      }
      try {
        if (present === undefined) await bucket.create(key, value);
        else await bucket.update(key, value, present.revision);
        return true;
      } catch (error) {
        if (!isBacktalkError(error, 'kv_conflict')) throw error;
        // Only another publisher that leads, or a copy of the bucket that lags, can be in the way.
        if (looks >= looksMax) throw publisherErrors.notLeading();
      }
    }
  }
}

const looksMax = 5;

function stableNumber(state: PolicyState): number {
  return versionNumber(state.policy, stableOf(state)) ?? 0;
}
