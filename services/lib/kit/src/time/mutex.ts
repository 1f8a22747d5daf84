/** Runs pieces of work one after the other, in the order in which they were given; a failed piece stops none. */
export class Mutex {
  private last: Promise<unknown> = Promise.resolve();
  private count = 0;

  /** Pieces that wait or run: callers bound it. */
  get size(): number {
    return this.count;
  }

  run<T>(work: () => Promise<T>): Promise<T> {
    this.count += 1;
    const result = this.last.then(work).finally(() => {
      this.count -= 1;
    });
    // The caller hears of the failure; the next piece only waits for the end.
    this.last = result.catch(() => undefined);
    return result;
  }
}
