// Signs of life. A part of the running system writes its lease again and again; who looks for it sees it vanish some
// seconds after it has stopped. While the broker is away nobody is taken for dead.
import { Lease } from '@backtalk/proto/weights';
import type { Broker } from '../broker/index.js';
import { asBacktalkError } from '../errors/index.js';
import { systemClock, type Clock } from '../telemetry/index.js';
import { leaseEveryMs, leaseTtlMs } from './buckets.js';
import { kvBucket, type KvBucket, type KvChange } from './kv-bucket.js';

export interface HoldLeaseOptions {
  readonly broker: Broker;
  /** What to say, asked anew each time. Its kind and instance make the key. */
  readonly lease: () => Lease;
  readonly everyMs?: number;
  readonly clock?: Clock;
}

export interface LeaseHold {
  /** Says at once what has changed. */
  refresh(): Promise<void>;
  release(): Promise<void>;
}

export function leaseBucket(broker: Broker): KvBucket<Lease> {
  return kvBucket(broker, 'leases', Lease);
}

export function holdLease({ broker, lease, everyMs = leaseEveryMs, clock = systemClock }: HoldLeaseOptions): LeaseHold {
  const bucket = leaseBucket(broker);
  const key = keyOf(lease());
  let released = false;
  let cancel: () => void = () => undefined;
  let writing: Promise<void> = Promise.resolve();
  const write = async () => {
    if (released) return;
    try {
      await bucket.put(key, lease());
    } catch (error) {
      broker.logger.warn('lease_not_renewed', { error: asBacktalkError(error) });
    }
  };
  /** One after the other, so that an older word never overtakes a newer one. */
  const refresh = () => {
    cancel();
    writing = writing.then(write).then(() => {
      if (!released) cancel = clock.timer(everyMs, renew);
    });
    return writing;
  };
  const renew = () => void refresh();
  const offStatus = broker.onStatus((status) => {
    if (status === 'up') renew();
  });
  renew();
  return {
    refresh,
    release: async () => {
      released = true;
      offStatus();
      cancel();
      await writing;
      cancel();
      await bucket.delete(key).catch((error: unknown) => {
        broker.logger.warn('lease_not_released', { error: asBacktalkError(error) });
      });
    },
  };
}

export interface LeaseView {
  /** In the order of their instances' names. */
  current(): readonly Lease[];
  /** Calls `fn` after every change; the returned function ends that. */
  onChange(fn: (leases: readonly Lease[]) => void): () => void;
  stop(): void;
}

export interface WatchLeasesOptions {
  readonly ttlMs?: number;
  readonly clock?: Clock;
}

/** `kind`: that of the leases, or `*` for all. Resolves when those that there are have been seen. */
export async function watchLeases(
  broker: Broker,
  kind: string,
  { ttlMs = leaseTtlMs, clock = systemClock }: WatchLeasesOptions = {},
): Promise<LeaseView> {
  const view = new View(broker, ttlMs, clock);
  await view.start(kind);
  return view;
}

interface Seen {
  readonly lease: Lease;
  readonly text: string;
  cancel: () => void;
}

class View implements LeaseView {
  readonly #broker: Broker;
  readonly #ttlMs: number;
  readonly #clock: Clock;
  readonly #seen = new Map<string, Seen>();
  readonly #listeners = new Set<(leases: readonly Lease[]) => void>();
  readonly #ending = new AbortController();
  #offStatus: () => void = () => undefined;

  constructor(broker: Broker, ttlMs: number, clock: Clock) {
    this.#broker = broker;
    this.#ttlMs = ttlMs;
    this.#clock = clock;
  }

  async start(kind: string): Promise<void> {
    // A lease is not renewed while the broker is away: its time starts anew when the broker is back.
    this.#offStatus = this.#broker.onStatus((status) => {
      for (const [key, seen] of this.#seen) {
        seen.cancel();
        if (status === 'up') seen.cancel = this.#expireLater(key);
      }
    });
    const take = (change: KvChange<Lease>) => {
      this.#take(change);
    };
    await leaseBucket(this.#broker).watch(`${kind}.*`, take, this.#ending.signal);
  }

  current(): readonly Lease[] {
    return [...this.#seen].sort(([left], [right]) => (left < right ? -1 : 1)).map(([, { lease }]) => lease);
  }

  onChange(fn: (leases: readonly Lease[]) => void): () => void {
    this.#listeners.add(fn);
    return () => this.#listeners.delete(fn);
  }

  stop(): void {
    this.#ending.abort();
    this.#offStatus();
    for (const seen of this.#seen.values()) seen.cancel();
    this.#listeners.clear();
  }

  #take(change: KvChange<Lease>): void {
    if (change.kind === 'deleted') return this.#drop(change.key);
    // A restarted broker has let leases expire whose holders live: they get the time to say so.
    if (change.kind === 'expired') return;
    const text = JSON.stringify(change.value);
    const known = this.#seen.get(change.key);
    known?.cancel();
    this.#seen.set(change.key, { lease: change.value, text, cancel: this.#expireLater(change.key) });
    if (known?.text !== text) this.#tell();
  }

  #expireLater(key: string): () => void {
    if (this.#broker.status() === 'down') return () => undefined;
    return this.#clock.timer(this.#ttlMs, () => {
      this.#drop(key);
    });
  }

  #drop(key: string): void {
    this.#seen.get(key)?.cancel();
    if (this.#seen.delete(key)) this.#tell();
  }

  #tell(): void {
    const leases = this.current();
    for (const listener of this.#listeners) listener(leases);
  }
}

function keyOf({ kind, instance }: Lease): string {
  return `${kind}.${instance}`;
}
