// Wakes the ledger loop. In: rings, any number. Out: one wake for all rings since the last. A ring is never lost.
import type { Clock } from '@backtalk/kit';

export class Bell {
  private rung = false;
  private answer: () => void = () => undefined;

  ring(): void {
    this.rung = true;
    this.answer();
  }

  /** Until the bell rings, the time is over, or the signal aborts. */
  async wait(ms: number | undefined, clock: Clock, signal: AbortSignal): Promise<void> {
    let cancel: () => void = () => undefined;
    await new Promise<void>((resolve) => {
      this.answer = resolve;
      if (this.rung || signal.aborted) resolve();
      if (ms !== undefined) cancel = clock.timer(ms, resolve);
      signal.addEventListener('abort', this.answer, { once: true });
    });
    cancel();
    signal.removeEventListener('abort', this.answer);
    this.rung = false;
    this.answer = () => undefined;
  }
}
