// Makes loaders and gateways follow the chain: KV `load`, then KV `routes`, then Commit to every gateway. One at a time, and
// always with the newest state, so that an older value never overtakes a newer one. Only what has changed is written.
import { Mutex, versionNumber, type KvBucket, type Trace } from '@backtalk/kit';
import type { LoadSet, Routes } from '@backtalk/proto/weights';
import { loadSetOf, routesOf, stableOf, type PolicyState } from '../domain/policy-state.js';
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
      this.events.routed(state.fence, committed.milliseconds, stableNumber(state));
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
      if (changed.length > 0) this.events.converged(state.fence, changed, stableNumber(state));
    });
  }

  private writeLoad(state: PolicyState): Promise<boolean> {
    return writeChange(this.loads, state.policy, loadSetOf(state));
  }

  private async writeRoutes(state: PolicyState): Promise<boolean> {
    const present = (await this.routes.get(state.policy))?.value;
    // A publisher that wrote a later fence knows more.
    if (present !== undefined && present.fence > state.fence) return false;
    return writeChange(this.routes, state.policy, routesOf(state));
  }
}

async function writeChange<T>(bucket: KvBucket<T>, key: string, value: T): Promise<boolean> {
  const present = await bucket.get(key);
  if (present !== undefined && JSON.stringify(present.value) === JSON.stringify(value)) return false;
  await bucket.put(key, value);
  return true;
}

function stableNumber(state: PolicyState): number {
  return versionNumber(state.policy, stableOf(state)) ?? 0;
}
