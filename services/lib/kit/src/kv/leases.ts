// Signs of life. A part of the running system writes its lease again and again; who looks for it sees it vanish some
// seconds after it has stopped. No part is taken for dead while the broker is down, nor while a broker that elects takes
// no leases: who cannot renew its own does not believe that others could.
import { Lease } from '@backtalk/proto/weights';
import type { Broker } from '../broker/connect.js';
import { asBacktalkError } from '../errors/backtalk-error.js';
import { type Clock, systemClock } from '../time/clock.js';
import { leaseEveryMs, leaseTtlMs } from '../topology/buckets.js';
import { kvBucket, type KvBucket, type KvEntry } from './kv-bucket.js';

interface HoldLeaseOptions {
  readonly broker: Broker;
  /** What to write, asked anew each time. Its kind and instance make the key. */
  readonly lease: () => Lease;
  readonly everyMs?: number;
  readonly clock?: Clock;
}

export interface LeaseHold {
  /** Writes the lease at once, when what it says has changed. */
  refresh(): Promise<void>;
  release(): Promise<void>;
}

/** Shorter than the time between the first lease that is not taken and the end of those that were. */
const askWithinMs = 3_000;

export function leaseBucket(broker: Broker): KvBucket<Lease> {
  return kvBucket(broker, 'leases', Lease, { timeoutMs: askWithinMs });
}

/** Whether the leases that are held over one connection are taken. */
class Renewals {
  /** Keys whose last renewal was not taken. */
  readonly refusedKeys = new Set<string>();
  private readonly listeners = new Set<() => void>();

  taken(key: string): void {
    if (this.refusedKeys.delete(key) && this.refusedKeys.size === 0) for (const tell of this.listeners) tell();
  }

  /** Calls `fn` when they are taken again; the returned function ends that. */
  onTakenAgain(fn: () => void): () => void {
    this.listeners.add(fn);
    return () => this.listeners.delete(fn);
  }
}

const renewals = new WeakMap<Broker, Renewals>();

function renewalsOver(broker: Broker): Renewals {
  const known = renewals.get(broker) ?? new Renewals();
  renewals.set(broker, known);
  return known;
}

export function holdLease({ broker, lease, everyMs = leaseEveryMs, clock = systemClock }: HoldLeaseOptions): LeaseHold {
  const bucket = leaseBucket(broker);
  const { kind, instance } = lease();
  const key = `${kind}.${instance}`;
  const renewing = renewalsOver(broker);
  let released = false;
  let cancel: () => void = () => undefined;
  let writing: Promise<void> = Promise.resolve();
  const write = async () => {
    if (released) return;
    try {
      await bucket.put(key, lease());
      renewing.taken(key);
    } catch (error) {
      const refusal = asBacktalkError(error);
      // What is never taken says nothing of the broker.
      if (refusal.retry === 'later') renewing.refusedKeys.add(key);
      broker.logger.warn('lease_not_renewed', { error: refusal });
    }
  };
  /** One after the other, so that an older lease never overtakes a newer one. */
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
      renewing.refusedKeys.delete(key);
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
  /** Asks for what is known now, for when it seems out of date: a watch may lag behind. */
  lookAgain(): Promise<void>;
  stop(): void;
}

interface WatchLeasesOptions {
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
  readonly revision: number;
  readonly text: string;
  cancel: () => void;
}

class View implements LeaseView {
  private readonly bucket: KvBucket<Lease>;
  private readonly renewals: Renewals;
  private readonly seen = new Map<string, Seen>();
  private readonly listeners = new Set<(leases: readonly Lease[]) => void>();
  private readonly ending = new AbortController();
  private looking: Promise<unknown> | undefined;
  private offStatus: () => void = () => undefined;
  private offRenewals: () => void = () => undefined;

  constructor(
    private readonly broker: Broker,
    private readonly ttlMs: number,
    private readonly clock: Clock,
  ) {
    this.bucket = leaseBucket(broker);
    this.renewals = renewalsOver(broker);
  }

  async start(kind: string): Promise<void> {
    // A lease is not renewed while the broker is down: its time starts anew when the broker is back.
    this.offStatus = this.broker.onStatus(() => {
      this.startAnew();
    });
    this.offRenewals = this.renewals.onTakenAgain(() => {
      this.startAnew();
    });
    await this.bucket.watch(
      `${kind}.*`,
      (change) => {
        // A restarted broker has let leases expire whose holders live: they get the time to say so.
        if (change.kind === 'expired') return;
        // An older lease than what was asked for comes late.
        if (change.revision < (this.seen.get(change.key)?.revision ?? 0)) return;
        if (change.kind === 'deleted') this.drop(change.key);
        else this.hold(change.key, change);
      },
      this.ending.signal,
    );
  }

  current(): readonly Lease[] {
    return [...this.seen].sort(([left], [right]) => (left < right ? -1 : 1)).map(([, { lease }]) => lease);
  }

  onChange(fn: (leases: readonly Lease[]) => void): () => void {
    this.listeners.add(fn);
    return () => this.listeners.delete(fn);
  }

  async lookAgain(): Promise<void> {
    // Many who ask at once are answered together.
    this.looking ??= Promise.all([...this.seen.keys()].map((key) => this.ask(key))).finally(() => {
      this.looking = undefined;
    });
    await this.looking;
  }

  stop(): void {
    this.ending.abort();
    this.offStatus();
    this.offRenewals();
    for (const seen of this.seen.values()) seen.cancel();
    this.listeners.clear();
  }

  private hold(key: string, { value: lease, revision }: KvEntry<Lease>): void {
    const text = JSON.stringify(lease);
    const known = this.seen.get(key);
    known?.cancel();
    this.seen.set(key, { lease, revision, text, cancel: this.expireLater(key) });
    if (known?.text !== text) this.tell();
  }

  private startAnew(): void {
    for (const [key, seen] of this.seen) {
      seen.cancel();
      seen.cancel = this.expireLater(key);
    }
  }

  private expireLater(key: string): () => void {
    if (this.broker.status() === 'down') return () => undefined;
    return this.clock.timer(this.ttlMs, () => {
      void this.expire(key);
    });
  }

  /** A watch may lag behind, as when the server that feeds it has died: the bucket itself is asked. */
  private async expire(key: string): Promise<void> {
    const seen = this.seen.get(key);
    if (seen === undefined) return;
    const stored = this.renewals.refusedKeys.size > 0 ? 'unknown' : await this.ask(key);
    // Renewed meanwhile, it has a time of its own.
    if (this.seen.get(key) !== seen || this.ending.signal.aborted) return;
    if (stored === 'unknown') seen.cancel = this.expireLater(key);
    else if (stored === undefined || stored.revision === seen.revision) this.drop(key);
    else this.hold(key, stored);
  }

  /** What the bucket holds; newer leases are taken as if the watch had given them. */
  private async ask(key: string): Promise<KvEntry<Lease> | 'unknown' | undefined> {
    try {
      const stored = await this.bucket.get(key);
      const known = this.seen.get(key);
      if (stored !== undefined && known !== undefined && stored.revision > known.revision) this.hold(key, stored);
      return stored;
    } catch (error) {
      this.broker.logger.warn('lease_not_looked_up', { error: asBacktalkError(error) });
      return 'unknown';
    }
  }

  private drop(key: string): void {
    this.seen.get(key)?.cancel();
    if (this.seen.delete(key)) this.tell();
  }

  private tell(): void {
    const leases = this.current();
    for (const listener of this.listeners) listener(leases);
  }
}

interface Listening {
  readonly grpcAddress: { readonly host: string };
  readonly healthAddress: { readonly host: string };
  /** `<host>:<port>`; empty where others find the part under the address that it listens on. */
  readonly grpcAdvertised: string;
}

/** A part that listens on every address is found, health and all, under the host that it advertises. */
export function leaseAddresses(
  { grpcAddress, healthAddress, grpcAdvertised }: Listening,
  ports: { readonly grpc: number; readonly health: number },
): Pick<Lease, 'grpcAddress' | 'healthAddress'> {
  if (grpcAdvertised === '') {
    return {
      grpcAddress: addressOf(grpcAddress.host, ports.grpc),
      healthAddress: addressOf(healthAddress.host, ports.health),
    };
  }
  const host = grpcAdvertised.slice(0, grpcAdvertised.lastIndexOf(':'));
  return { grpcAddress: grpcAdvertised, healthAddress: `${host}:${ports.health}` };
}

function addressOf(host: string, port: number): string {
  return `${host.includes(':') ? `[${host}]` : host}:${port}`;
}
