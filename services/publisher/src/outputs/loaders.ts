// The loaders of a policy, by their leases: asks all of them at once to prepare or retire a version.
import {
  asBacktalkError,
  versionNumber,
  within,
  type BacktalkError,
  type Clock,
  type LeaseView,
  type Trace,
  type WireSecurity,
} from '@backtalk/kit';
import { LoaderServiceDefinition } from '@backtalk/proto/control';
import type { EngineLease, LoadedVersion } from '@backtalk/proto/weights';
import type { PublisherEvents } from '../events.js';
import { Peers } from './peers.js';

export interface LeasedEngine {
  readonly instance: string;
  readonly address: string;
  readonly engine: EngineLease;
}

export interface Prepared {
  readonly ready: readonly LeasedEngine[];
  readonly failed: readonly BacktalkError[];
  /** The slowest one's time. */
  readonly seconds: number;
}

const retireDeadlineMs = 30_000;
/** A loader writes its lease at once: one that takes longer is left out for now. */
const leasedWithinMs = 2_000;

export class Loaders {
  private readonly peers: Peers<typeof LoaderServiceDefinition>;
  private readonly kept = new Set<string>();

  constructor(
    private readonly leases: LeaseView,
    private readonly policy: string,
    private readonly prepareDeadlineMs: number,
    private readonly events: PublisherEvents,
    private readonly clock: Clock,
    wire?: WireSecurity,
  ) {
    this.peers = new Peers(LoaderServiceDefinition, wire);
  }

  /** Those whose engine is ready and serves the policy. */
  ready(): LeasedEngine[] {
    return this.all().filter(({ engine }) => engine.ready);
  }

  all(): LeasedEngine[] {
    const leased = this.leases.current().flatMap(({ instance, grpcAddress, engine }) => {
      const ours = engine?.versions.some((version) => versionNumber(this.policy, version) !== undefined) === true;
      return ours && grpcAddress !== '' ? [{ instance, address: grpcAddress, engine }] : [];
    });
    this.peers.keep(leased.map(({ address }) => address));
    return leased;
  }

  async prepare(
    loaders: readonly LeasedEngine[],
    { version, manifestDigest }: LoadedVersion,
    trace?: Trace,
  ): Promise<Prepared> {
    const startMs = this.clock.now();
    const calling = { deadlineMs: this.prepareDeadlineMs, ...(trace === undefined ? {} : { trace }) };
    const request = { policy: this.policy, version, manifestDigest };
    const outcomes = await Promise.all(
      loaders.map(async (loader) => {
        try {
          await this.peers.at(loader.address).prepare(request, calling);
          return { loader, error: undefined };
        } catch (thrown) {
          const error = asBacktalkError(thrown);
          this.events.loaderLeftOut(loader.instance, version, error);
          return { loader, error };
        }
      }),
    );
    return {
      ready: outcomes.filter(({ error }) => error === undefined).map(({ loader }) => loader),
      failed: outcomes.flatMap(({ error }) => (error === undefined ? [] : [error])),
      seconds: (this.clock.now() - startMs) / 1_000,
    };
  }

  /** Those whose leases say that they hold the version, so that gateways can know it too. Waits for all, but not long. */
  async leased(loaders: readonly LeasedEngine[], version: string): Promise<LeasedEngine[]> {
    const instances = new Set(loaders.map(({ instance }) => instance));
    const asked = () => this.all().filter(({ instance }) => instances.has(instance));
    const holding = () => asked().filter(({ engine }) => engine.versions.includes(version));
    const isLeased = () => asked().every(({ engine }) => engine.versions.includes(version));
    if (isLeased()) return holding();
    let stop: () => void = () => undefined;
    const leased = new Promise<void>((resolve) => {
      stop = this.leases.onChange(() => {
        if (isLeased()) resolve();
      });
    });
    await within(this.clock, leasedWithinMs, leased);
    stop();
    return holding();
  }

  /** Meanwhile no loader is told to take the version off: it is about to answer again, and no load set names it yet. */
  async keeping<T>(version: string, work: () => Promise<T>): Promise<T> {
    const isFirst = !this.kept.has(version);
    this.kept.add(version);
    try {
      return await work();
    } finally {
      if (isFirst) this.kept.delete(version);
    }
  }

  /** A loader that cannot be asked unloads by itself, some time after the version has left the load set. */
  async retire(loaders: readonly LeasedEngine[], version: string, fence: number): Promise<void> {
    if (this.kept.has(version)) return;
    const request = { policy: this.policy, version, fence };
    await Promise.all(
      loaders.map(async ({ address, instance }) => {
        try {
          const { already } = await this.peers.at(address).retire(request, { deadlineMs: retireDeadlineMs });
          if (!already) this.events.versionRetired(instance, version);
        } catch (error) {
          this.events.retireFailed(instance, version, asBacktalkError(error));
        }
      }),
    );
  }

  close(): void {
    this.peers.keep([]);
  }
}
