// Makes one instance of a service the leader. In: what to do when leadership is gained and lost. Out: at most one leader
// at a time: who cannot renew its lease stops leading before the lease can expire for others.
import { Lease } from '@backtalk/proto/weights';
import type { Broker } from '../broker/connect.js';
import { asBacktalkError, isBacktalkError } from '../errors/backtalk-error.js';
import { newId } from '../identity/ids.js';
import { type Clock, systemClock } from '../time/clock.js';
import { leaseEveryMs, leaseTtlMs } from '../topology/buckets.js';
import type { BrokerService } from '../topology/users.js';
import type { KvBucket } from './kv-bucket.js';
import { leaseBucket } from './leases.js';

export interface SingletonOptions {
  /** The signal aborts when leadership is lost. */
  readonly onGained: (signal: AbortSignal) => void | Promise<void>;
  readonly onLost: () => void | Promise<void>;
  /** Time to live of bucket `leases`, as the installation has it. */
  readonly ttlMs?: number;
  readonly everyMs?: number;
  readonly clock?: Clock;
}

export interface Singleton {
  readonly leading: boolean;
  /** Tries now, and again and again; resolves after the first try. */
  start(): Promise<void>;
  /** Ends the leadership, waits for `onLost`, then lets another lead at once. */
  stop(): Promise<void>;
}

export function singleton(broker: Broker, name: BrokerService, instance: string, options: SingletonOptions): Singleton {
  return new Candidate(broker, name, instance, options);
}

class Candidate implements Singleton {
  private readonly bucket: KvBucket<Lease>;
  private readonly key: string;
  private readonly lease: Lease;
  private readonly clock: Clock;
  private revision: number | undefined;
  private lead: AbortController | undefined;
  private stopped = false;
  private trying: Promise<void> = Promise.resolve();
  /** What is done when leadership is lost. */
  private losing: Promise<void> = Promise.resolve();
  private cancelTry: () => void = () => undefined;
  private cancelGiveUp: () => void = () => undefined;

  constructor(
    private readonly broker: Broker,
    name: BrokerService,
    instance: string,
    private readonly options: SingletonOptions,
  ) {
    this.bucket = leaseBucket(broker);
    this.key = `singleton.${name}`;
    // Two processes may have one name: what tells them apart is made here.
    this.lease = Lease.fromPartial({ kind: 'singleton', instance: `${instance}.${newId()}` });
    this.clock = options.clock ?? systemClock;
  }

  get leading(): boolean {
    return this.lead !== undefined;
  }

  async stop(): Promise<void> {
    this.stopped = true;
    this.cancelTry();
    await this.trying;
    const revision = this.revision;
    await this.lose();
    if (revision === undefined) return;
    await this.bucket.delete(this.key, revision).catch((error: unknown) => {
      this.broker.logger.warn('leadership_not_released', { error: asBacktalkError(error) });
    });
  }

  start(): Promise<void> {
    this.trying = this.try().finally(() => {
      if (this.stopped) return;
      this.cancelTry = this.clock.timer(this.options.everyMs ?? leaseEveryMs, () => void this.start());
    });
    return this.trying;
  }

  private async try(): Promise<void> {
    const { ttlMs = leaseTtlMs } = this.options;
    // Counted from before the write: the broker's time to live cannot have begun earlier.
    const cancelGiveUp = this.clock.timer(ttlMs * 0.75, () => void this.lose());
    try {
      const revision =
        this.revision === undefined
          ? await this.bucket.create(this.key, this.lease)
          : await this.bucket.update(this.key, this.lease, this.revision);
      this.cancelGiveUp();
      this.cancelGiveUp = cancelGiveUp;
      await this.gain(revision);
    } catch (error) {
      cancelGiveUp();
      if (!isBacktalkError(error, 'kv_conflict')) {
        this.broker.logger.warn('leadership_not_renewed', { key: this.key, error: asBacktalkError(error) });
      } else if (!(await this.isOurs())) {
        await this.lose();
      }
    }
  }

  private async gain(revision: number): Promise<void> {
    this.revision = revision;
    // What was begun before is brought to its end first; the lease may run out meanwhile.
    await this.losing;
    if (this.lead !== undefined || this.revision !== revision) return;
    this.lead = new AbortController();
    this.broker.logger.info('leadership_gained', { key: this.key });
    try {
      await this.options.onGained(this.lead.signal);
    } catch (error) {
      this.broker.logger.error('leadership_not_taken_up', { key: this.key, error: asBacktalkError(error) });
      await this.lose();
    }
  }

  /** A renewal whose answer was lost is followed by a conflict with ourselves. */
  private async isOurs(): Promise<boolean> {
    if (!this.leading) return false;
    // Not known is not ours: the lead ends before the lease can.
    const entry = await this.bucket.get(this.key).catch(() => undefined);
    if (entry?.value.instance !== this.lease.instance) return false;
    this.revision = entry.revision;
    return true;
  }

  private lose(): Promise<void> {
    this.cancelGiveUp();
    this.revision = undefined;
    const lead = this.lead;
    if (lead === undefined) return this.losing;
    this.lead = undefined;
    lead.abort();
    this.broker.logger.warn('leadership_lost', { key: this.key });
    this.losing = this.leave();
    return this.losing;
  }

  private async leave(): Promise<void> {
    try {
      await this.options.onLost();
    } catch (error) {
      this.broker.logger.error('leadership_loss_failed', { key: this.key, error: asBacktalkError(error) });
    }
  }
}
