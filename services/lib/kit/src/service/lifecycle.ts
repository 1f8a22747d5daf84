// Remembers what was started, and stops it in reverse order within one deadline. A part that fails to stop does not
// keep the others from stopping: it is logged, and named in the error at the end.
import { asBacktalkError, kitErrors } from '../errors/backtalk-error.js';
import type { Logger } from '../telemetry/logger.js';
import { type Clock, systemClock, within } from '../time/clock.js';

interface Part {
  readonly name: string;
  readonly stop: () => Promise<void> | void;
}

export class Lifecycle {
  private readonly parts: Part[] = [];

  constructor(
    private readonly logger: Logger,
    private readonly clock: Clock = systemClock,
  ) {}

  /** Call it right after the part has started. */
  add(name: string, stop: () => Promise<void> | void): void {
    this.parts.push({ name, stop });
  }

  /** Every part is asked to stop, even after the deadline: then it is no longer waited for. */
  async stopAll(deadlineMs: number): Promise<void> {
    const deadline = this.clock.now() + deadlineMs;
    const unclean: string[] = [];
    for (const { name, stop } of this.parts.splice(0).reverse()) {
      const waitMs = Math.max(0, deadline - this.clock.now());
      const stopping = Promise.resolve()
        .then(stop)
        .then(() => true)
        .catch((error: unknown) => {
          this.logger.error('part_stop_failed', { part: name, error: asBacktalkError(error) });
          return false;
        });
      const stopped = await within(this.clock, waitMs, stopping);
      if (stopped === undefined) this.logger.error('part_stop_late', { part: name, waitMs });
      if (stopped !== true) unclean.push(name);
    }
    if (unclean.length > 0) throw kitErrors.stopIncomplete({ parts: unclean });
  }
}
