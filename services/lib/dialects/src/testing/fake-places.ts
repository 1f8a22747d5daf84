// How many requests a fake engine works on at once. Others wait in order; too many are refused.

export class FakePlaces {
  private taken = 0;
  private readonly waiting: (() => void)[] = [];

  /** Resolves with a function that gives the place back, or with undefined when even the queue is full. */
  async take(places: number, queueMax: number): Promise<(() => void) | undefined> {
    if (this.taken >= places) {
      if (this.waiting.length >= queueMax) return undefined;
      await new Promise<void>((resolve) => this.waiting.push(resolve));
    } else this.taken += 1;
    let given = false;
    return () => {
      if (given) return;
      given = true;
      const next = this.waiting.shift();
      if (next === undefined) this.taken -= 1;
      else next();
    };
  }
}
