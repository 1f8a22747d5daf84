// Moves the spool's facts to the broker, in the order in which they were written, whenever the broker takes them.
//
// In: a spool, and the news that the broker may be back. Out: facts in the log, segments discarded once all of theirs are,
// and set aside where one of theirs never can be: nothing that cannot be read stops what comes after it.
// A segment that was half drained when the process died is drained again from its start: repeats change nothing. It
// never runs twice at once.
import { asBacktalkError, type Clock, type FactPublisher } from '@backtalk/kit';
import { gatewayErrors } from '../errors.js';
import type { GatewayEvents } from '../events.js';
import type { SpoolRecord } from '../domain/spool-record.js';
import type { Spool } from './spool.js';
import { storableOf, type Storable } from './storable.js';

interface SpoolDrainOptions {
  readonly spool: Spool;
  readonly publisher: FactPublisher;
  readonly clock: Clock;
  readonly events: GatewayEvents;
  /** Called for every fact that the broker took. */
  readonly onStored: () => void;
}

const publishTimeoutMs = 5_000;
const pauseMs = 1_000;

export class SpoolDrain {
  private running: Promise<void> | undefined;
  private stopped = false;
  private pausing = new AbortController();

  constructor(private readonly options: SpoolDrainOptions) {}

  /** The broker may be back. */
  wake(): void {
    this.pausing.abort();
    this.kick();
  }

  /** There is something to drain. Where it was tried in vain a moment ago, more to drain is no reason to try before the pause is over. */
  kick(): void {
    if (this.stopped || this.running !== undefined || this.options.spool.isEmpty) return;
    this.running = this.drain().finally(() => {
      this.running = undefined;
      // A fact may have come after the last look, and nothing else would take it.
      if (!this.options.spool.isEmpty) this.kick();
    });
  }

  async stop(): Promise<void> {
    this.stopped = true;
    this.pausing.abort();
    await this.running;
  }

  private async drain(): Promise<void> {
    while (!this.stopped) {
      try {
        const segment = await this.options.spool.oldest();
        if (segment === undefined) return;
        const { records, unreadable } = await this.options.spool.read(segment);
        let lost = unreadable;
        for (const record of records) if (!this.stopped && !(await this.store(record))) lost += 1;
        if (this.stopped) return;
        await (lost === 0 ? this.options.spool.discard(segment) : this.options.spool.setAside(segment, lost));
        this.options.events.spoolDrained(records.length);
      } catch (error) {
        this.options.events.drainPaused(asBacktalkError(error));
        // The pause ends early when there is news.
        this.pausing = new AbortController();
        if (!this.stopped) await this.options.clock.sleep(pauseMs, this.pausing.signal).catch(() => undefined);
      }
    }
  }

  /** False for a record that never will be stored. */
  private async store(record: SpoolRecord): Promise<boolean> {
    try {
      await decoded(this.options.publisher, record).publish(publishTimeoutMs);
      this.options.onStored();
      return true;
    } catch (thrown) {
      const error = asBacktalkError(thrown);
      // Everything else may pass, a missing permission too: the fact is kept.
      if (!neverStored.has(error.code)) throw error;
      this.options.events.spoolRejected(error);
      return false;
    }
  }
}

const neverStored: ReadonlySet<string> = new Set(['fact_too_large', 'fact_invalid', 'spool_record_invalid']);

/** Its checksum held, so that it was written so: by another release, or by a fault of ours. */
function decoded(publisher: FactPublisher, record: SpoolRecord): Storable {
  try {
    return storableOf(publisher, record);
  } catch (cause) {
    throw gatewayErrors.spoolRecordInvalid({ fact: record.name }, cause);
  }
}
