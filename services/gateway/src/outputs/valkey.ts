// Valkey as a memory that may be away.
//
// In: a purpose and some commands. Out: their result, or undefined when it did not come in time. It never fails a
// caller and never makes one wait longer than the limit; after some failures in a row it is left alone for a second.
import { asBacktalkError, type Clock } from '@backtalk/kit';
import { Redis } from 'ioredis';
import { gatewayErrors } from '../errors.js';
import type { GatewayEvents } from '../events.js';
import { Breaker } from '../domain/breaker.js';

export interface ValkeyOptions {
  readonly url: string;
  readonly waitMs: number;
  readonly clock: Clock;
  readonly events: GatewayEvents;
}

const reconnectMsMax = 2_000;
const silenceMsMax = 5_000;

export class Valkey {
  private readonly client: Redis;
  private readonly breaker = new Breaker({ failuresMax: 5, restMs: 1_000 });

  constructor(private readonly options: ValkeyOptions) {
    this.client = new Redis(options.url, {
      lazyConnect: true,
      // A command that cannot be sent now is of no use later.
      enableOfflineQueue: false,
      maxRetriesPerRequest: 0,
      enableAutoPipelining: true,
      // A peer that stopped without closing is given up, so that commands do not pile up behind it.
      socketTimeout: silenceMsMax,
      connectTimeout: silenceMsMax,
      retryStrategy: (attempt) => Math.min(attempt * 100, reconnectMsMax),
    });
    this.client.on('error', (error: Error) => options.events.valkeyFailed(asBacktalkError(error)));
  }

  /** Does not wait: the gateway serves without Valkey too. */
  start(): void {
    this.client.connect().catch((error: unknown) => this.options.events.valkeyFailed(asBacktalkError(error)));
  }

  stop(): void {
    this.client.disconnect();
  }

  async attempt<T>(purpose: string, work: (client: Redis) => Promise<T>): Promise<T | undefined> {
    const { clock, events } = this.options;
    if (this.client.status !== 'ready' || !this.breaker.permits(clock.now())) {
      events.valkeySkipped(purpose);
      return undefined;
    }
    try {
      const result = await this.inTime(work(this.client));
      this.breaker.succeeded();
      return result;
    } catch {
      // The reason is logged by the connection's own events; here it only counts.
      this.breaker.failed(clock.now());
      events.valkeySkipped(purpose);
      return undefined;
    }
  }

  private inTime<T>(work: Promise<T>): Promise<T> {
    return new Promise((resolve, reject) => {
      const { clock, waitMs } = this.options;
      const cancel = clock.timer(waitMs, () => reject(gatewayErrors.slowLookup({ limitMs: waitMs })));
      work.then(resolve, reject).finally(cancel);
    });
  }
}
