// Moves the spool's facts to the broker, in the order in which they were written, whenever the broker takes them.
//
// In: a spool, and the news that the broker may be back. Out: facts in the log, segments discarded once all of theirs are.
// A segment that was half drained when the process died is drained again from its start: repeats change nothing. It
// never runs twice at once.
import { asBacktalkError, type Clock, type FactPublisher } from '@backtalk/kit';
import type { GatewayEvents } from '../events.js';
import type { SpoolRecord } from '../domain/spool-record.js';
import type { Spool } from './spool.js';
import { storableOf } from './storable.js';

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

  /** There is something to drain, or the broker may be back. */
  kick(): void {
    if (this.stopped) return;
    this.pausing.abort();
    if (this.running !== undefined || this.options.spool.isEmpty) return;
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
        const records = await this.options.spool.read(segment);
        for (const record of records) if (!this.stopped) await this.store(record);
        if (this.stopped) return;
        await this.options.spool.discard(segment);
        this.options.events.spoolDrained(records.length);
      } catch (error) {
        this.options.events.drainPaused(asBacktalkError(error));
        // The pause ends early when there is news.
        this.pausing = new AbortController();
        if (!this.stopped) await this.options.clock.sleep(pauseMs, this.pausing.signal).catch(() => undefined);
      }
    }
  }

  private async store(record: SpoolRecord): Promise<void> {
    try {
      await storableOf(this.options.publisher, record).publish(publishTimeoutMs);
      this.options.onStored();
    } catch (thrown) {
      const error = asBacktalkError(thrown);
      // Everything else may pass, a missing permission too: the fact is kept.
      const willNeverFit = error.code === 'fact_too_large' || error.code === 'fact_invalid';
      if (!willNeverFit) throw error;
      this.options.events.spoolRejected(error);
    }
  }
}
