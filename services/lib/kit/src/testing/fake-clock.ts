// A clock that tests move by hand. Timers fire in order of their time, and what they set off settles before the next.
import { setImmediate as settle } from 'node:timers/promises';
import type { Clock } from '../time/clock.js';

interface Timer {
  readonly at: number;
  readonly fire: () => void;
}

export class FakeClock implements Clock {
  private time: number;
  private readonly timers = new Set<Timer>();

  constructor(now = 1_700_000_000_000) {
    this.time = now;
  }

  /** How many timers and sleeps wait. */
  get waiting(): number {
    return this.timers.size;
  }

  now(): number {
    return this.time;
  }

  timer(ms: number, fn: () => void): () => void {
    const timer = { at: this.time + ms, fire: fn };
    this.timers.add(timer);
    return () => {
      this.timers.delete(timer);
    };
  }

  sleep(ms: number, signal?: AbortSignal): Promise<void> {
    return new Promise((resolve, reject) => {
      const onAbort = (): void => {
        cancel();
        reject(signal?.reason as Error);
      };
      const cancel = this.timer(ms, () => {
        signal?.removeEventListener('abort', onAbort);
        resolve();
      });
      if (signal?.aborted === true) onAbort();
      else signal?.addEventListener('abort', onAbort, { once: true });
    });
  }

  /** Moves time on; resolves when everything that fell due has fired and settled. */
  async advance(ms: number): Promise<void> {
    const end = this.time + ms;
    await settle();
    for (let due = this.nextDue(end); due !== undefined; due = this.nextDue(end)) {
      this.timers.delete(due);
      this.time = Math.max(this.time, due.at);
      due.fire();
      await settle();
    }
    this.time = end;
  }

  private nextDue(end: number): Timer | undefined {
    const due = [...this.timers].filter((timer) => timer.at <= end);
    return due.sort((a, b) => a.at - b.at)[0];
  }
}
