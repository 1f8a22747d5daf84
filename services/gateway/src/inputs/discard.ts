// Lets a client finish that sends a body which was refused: closing at once would reset the connection, and it would never read why.
// In: what it sends. Out: the news that it is over, or has lasted long enough. Sent at full speed, unwanted bodies would
// keep this process busy before all others; so they are taken in pieces, one in each pause, however many bodies there are.
import type { Readable } from 'node:stream';
import type { Clock } from '@backtalk/kit';

const discardMsMax = 2_000;
/** A piece has 64 KiB at most: some 20 MB a second of all bodies together. */
const pauseMs = 3;

export class Discarder {
  /** Bodies that wait for their next piece to be taken. */
  private readonly waiting = new Set<Readable>();
  private isPausing = false;

  constructor(private readonly clock: Clock) {}

  discard(body: Readable, then: () => void): void {
    const pause = (): void => {
      body.pause();
      this.waiting.add(body);
      this.pauseOnce();
    };
    const done = (): void => {
      cancelDeadline();
      this.waiting.delete(body);
      body.off('data', pause).off('end', done).off('close', done).resume();
      then();
    };
    const cancelDeadline = this.clock.timer(discardMsMax, done);
    body.on('data', pause).once('end', done).once('close', done).resume();
  }

  private pauseOnce(): void {
    if (this.isPausing || this.waiting.size === 0) return;
    this.isPausing = true;
    this.clock.timer(pauseMs, () => {
      this.isPausing = false;
      const [next] = this.waiting;
      if (next !== undefined) this.waiting.delete(next);
      next?.resume();
      this.pauseOnce();
    });
  }
}
