// Work that goes on after its request was answered: a stop waits for it.
import { asBacktalkError } from '@backtalk/kit';
import type { GatewayEvents } from '../events.js';

export class BackgroundWork {
  private readonly pending = new Set<Promise<unknown>>();

  constructor(private readonly events: GatewayEvents) {}

  add(work: Promise<unknown>): void {
    const watched = work
      .catch((error: unknown) => this.events.refused('background', asBacktalkError(error)))
      .finally(() => this.pending.delete(watched));
    this.pending.add(watched);
  }

  async settled(): Promise<void> {
    while (this.pending.size > 0) await Promise.all(this.pending);
  }
}
