// Runs handlers one after the other. Two kinds of facts come through two consumers, and a request that looks for an answer
// must not miss the answer that arrives at the same moment.

export class OneAtATime {
  private tail: Promise<unknown> = Promise.resolve();

  run<T>(work: () => Promise<T>): Promise<T> {
    const result = this.tail.then(work, work);
    this.tail = result.catch(() => undefined);
    return result;
  }
}
