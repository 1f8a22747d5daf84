// Which versions answer for each policy, now.
//
// In: the bucket `routes`, and what the publisher commits. Out: the routes in force. The newer fence wins, whichever way
// it came, so a late message changes nothing. It keeps what it has while the broker is down.
import { asBacktalkError, type KvBucket } from '@backtalk/kit';
import type { Routes } from '@backtalk/proto/weights';
import type { GatewayEvents } from '../events.js';
import { isNewer } from '../domain/version-choice.js';

export class RouteTable {
  private readonly routes = new Map<string, Routes>();
  private readonly watching = new AbortController();

  constructor(
    private readonly bucket: KvBucket<Routes>,
    private readonly events: GatewayEvents,
  ) {}

  async start(): Promise<void> {
    await this.bucket.watch(
      '>',
      (change) => {
        // Routes are never withdrawn: a bucket that was emptied is filled again by the publisher.
        if (change.kind === 'put') this.apply(change.value);
      },
      this.watching.signal,
    );
  }

  stop(): void {
    this.watching.abort();
  }

  of(policy: string): Routes | undefined {
    return this.routes.get(policy);
  }

  /** The fence that is in force then. */
  apply(routes: Routes): number {
    const current = this.routes.get(routes.policy);
    if (!isNewer(routes, current)) return current?.fence ?? 0;
    this.routes.set(routes.policy, routes);
    if (current?.fence !== routes.fence) this.events.routed(routes.policy, routes.fence);
    return routes.fence;
  }

  /** Reads the bucket again, for when an engine does not know what the routes say. */
  async reread(policy: string): Promise<void> {
    try {
      const entry = await this.bucket.get(policy);
      if (entry !== undefined) this.apply(entry.value);
    } catch (error) {
      this.events.watchFailed('routes', asBacktalkError(error));
    }
  }

  /** By policy. */
  get fences(): Record<string, number> {
    return Object.fromEntries([...this.routes].map(([policy, { fence }]) => [policy, fence]));
  }

  /** The newest fence of all policies. */
  get fence(): number {
    return Math.max(0, ...[...this.routes.values()].map((routes) => routes.fence));
  }
}
