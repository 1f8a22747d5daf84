// Which turns are traced?
//
// In: turns that begin while this process collects spans. Out: whether one is sampled: so many a second, whatever flag
// its client set, because a client's word would let it flood the collector of traces. No I/O.
import type { Clock } from '@backtalk/kit';

/** A turn has some twenty spans: 400 a second fit the exporter's queue of 2,048. */
const turnsPerSecond = 20;

export class TraceRate {
  private second = 0;
  private taken = 0;

  constructor(
    private readonly clock: Clock,
    private readonly isCollecting: () => boolean,
  ) {}

  samples(): boolean {
    if (!this.isCollecting()) return false;
    const second = Math.floor(this.clock.now() / 1000);
    if (second !== this.second) this.taken = 0;
    this.second = second;
    this.taken += 1;
    return this.taken <= turnsPerSecond;
  }
}
