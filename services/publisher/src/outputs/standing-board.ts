// Writes what the rest of the system is told: the KV buckets `load` and `routes`. Writes only what has changed.
import type { KvBucket } from '@backtalk/kit';
import type { LoadSet, Routes } from '@backtalk/proto/weights';
import { loadSetOf, routesOf } from '../domain/standing.js';
import type { PolicyState } from '../domain/policy-state.js';

export class StandingBoard {
  constructor(
    private readonly loads: KvBucket<LoadSet>,
    private readonly routes: KvBucket<Routes>,
  ) {}

  /** True when it was something else before. */
  async writeLoad(state: PolicyState): Promise<boolean> {
    return writeChange(this.loads, state.policy, loadSetOf(state));
  }

  async writeRoutes(state: PolicyState): Promise<boolean> {
    const present = (await this.routes.get(state.policy))?.value;
    // Whoever wrote a later fence knows more.
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
