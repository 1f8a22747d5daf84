// Wakes the ledger loop: one wake for all notifications since the last, and none is lost.
import type { Clock } from '@backtalk/kit';

export class WakeSignal {
  private notified = false;
  private resume: () => void = () => undefined;

  notify(): void {
    this.notified = true;
    this.resume();
  }

  /** Until it is notified, the time is over, or the signal aborts. */
  async wait(ms: number, clock: Clock, signal: AbortSignal): Promise<void> {
    let cancel: () => void = () => undefined;
    await new Promise<void>((resolve) => {
      this.resume = resolve;
      if (this.notified || signal.aborted) resolve();
      cancel = clock.timer(ms, resolve);
      signal.addEventListener('abort', this.resume, { once: true });
    });
    cancel();
    signal.removeEventListener('abort', this.resume);
    this.notified = false;
    this.resume = () => undefined;
  }
}
