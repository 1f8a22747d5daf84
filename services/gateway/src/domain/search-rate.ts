// How often may a key have the log searched?
//
// In: searches that begin. Out: whether one may: so many a window of time for each key, so that none uses up what
// others may ask for. No I/O.
import type { Clock } from '@backtalk/kit';

export const searchWindowMs = 10_000;
/** A search reads some thousand headers: 0.2 s of the event loop's time. */
const searchesPerWindow = 3;

export class SearchRate {
  private readonly begun = new Map<string, number>();
  private window = 0;

  constructor(private readonly clock: Clock) {}

  permits(keyId: string): boolean {
    const window = Math.floor(this.clock.now() / searchWindowMs);
    if (window !== this.window) this.begun.clear();
    this.window = window;
    const count = (this.begun.get(keyId) ?? 0) + 1;
    this.begun.set(keyId, count);
    return count <= searchesPerWindow;
  }
}
