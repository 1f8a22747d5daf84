// Valkey as a memory that may be lost.
//
// In: a purpose and some commands. Out: their result, or undefined when it did not come in time. It never fails a
// caller and never makes one wait longer than the limit; after some failures in a row it is left alone for a second.
import { asBacktalkError, within, type Clock, type TlsFiles } from '@backtalk/kit';
import { connectionOptions } from '@backtalk/kit/valkey';
import { Redis } from 'ioredis';
import type { GatewayConfig } from '../config.js';
import type { GatewayEvents } from '../events.js';
import { Breaker } from '../domain/breaker.js';

export class Valkey {
  private readonly client: Redis;
  private readonly breaker = new Breaker(5, 1_000);

  constructor(
    private readonly config: Pick<GatewayConfig, 'valkeyUrl' | 'lookupWaitMs' | 'instance'>,
    private readonly clock: Clock,
    private readonly events: GatewayEvents,
    tls?: TlsFiles,
  ) {
    this.client = new Redis({
      ...connectionOptions({ url: config.valkeyUrl, tls, name: `gateway ${config.instance}` }, 'asker'),
      lazyConnect: true,
      // A command that cannot be sent now is of no use later.
      maxRetriesPerRequest: 0,
      enableAutoPipelining: true,
      // A peer that stopped without closing is given up soon, so that commands do not pile up behind it.
      socketTimeout: 5_000,
    });
    this.client.on('error', (error: Error) => events.valkeyFailed(asBacktalkError(error)));
  }

  /** Does not wait: the gateway serves without Valkey too. */
  start(): void {
    this.client.connect().catch((error: unknown) => this.events.valkeyFailed(asBacktalkError(error)));
  }

  stop(): void {
    this.client.disconnect();
  }

  async attempt<T>(purpose: string, work: (client: Redis) => Promise<T>): Promise<T | undefined> {
    const { clock, events } = this;
    if (this.client.status === 'ready' && this.breaker.permits(clock.now())) {
      // The reason of a failure is logged by the connection's own events; here it only counts.
      const answer = work(this.client).then((result) => ({ result }));
      const found = await within(clock, this.config.lookupWaitMs, answer).catch(() => undefined);
      if (found !== undefined) {
        this.breaker.succeeded();
        return found.result;
      }
      this.breaker.failed(clock.now());
    }
    events.valkeySkipped(purpose);
    return undefined;
  }
}
