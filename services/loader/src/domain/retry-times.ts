// When a version that could not be loaded is tried again: later from failure to failure. A refusal (`never`) is tried at
// the longest wait, because an engine may refuse what it took before for want of room. Pure.
import type { Retry } from '@backtalk/kit';

const firstMs = 1_000;
const longestMs = 30_000;

export class RetryTimes {
  private readonly failures = new Map<string, { count: number; at: number }>();

  isDue(version: string, now: number): boolean {
    return now >= (this.failures.get(version)?.at ?? 0);
  }

  succeeded(version: string): void {
    this.failures.delete(version);
  }

  failed(version: string, now: number, retry: Retry): void {
    const count = (this.failures.get(version)?.count ?? 0) + 1;
    const waitMs = Math.min(longestMs, firstMs * 2 ** Math.min(count - 1, 10));
    this.failures.set(version, { count, at: now + (retry === 'later' ? waitMs : longestMs) });
  }

  /** Everything is due again. */
  forget(): void {
    this.failures.clear();
  }
}
