// Lets one piece of work through at a time, in order. Beyond `waitingMax` it refuses, so that nothing piles up.
import { loaderErrors } from '../errors.js';

const waitingMax = 32;

export class Turnstile {
  private last: Promise<unknown> = Promise.resolve();
  private waiting = 0;

  async pass<T>(work: () => Promise<T>): Promise<T> {
    if (this.waiting >= waitingMax) throw loaderErrors.loaderBusy({ waiting: this.waiting });
    this.waiting += 1;
    const mine = this.last.then(work, work).finally(() => (this.waiting -= 1));
    // The next in line does not care how this one ends; its own caller does.
    this.last = mine.catch(() => undefined);
    return mine;
  }
}
