// Who goes on next?
//
// In: keys whose requests begin or end. Out: a turn of the event loop for each, one at a time; where many wait, keys take
// turns, whatever each of them has waiting. Hundreds of requests that one key begins at once, or that end at once, would
// otherwise be worked through before anything is read of what others sent. No I/O.

export class FairTurns {
  /** What waits by key, the key whose turn is next first. */
  private readonly waiting = new Map<string, (() => void)[]>();
  private isTaken = false;

  /** @param nextTurn calls back in the next turn of the event loop, when it has read what came */
  constructor(private readonly nextTurn: (go: () => void) => void) {}

  /** Resolves when it is the key's turn; at once where this one is free. */
  async of(keyId: string): Promise<void> {
    if (!this.isTaken) {
      this.isTaken = true;
      this.nextTurn(() => this.next());
      return;
    }
    await new Promise<void>((go) => {
      const own = this.waiting.get(keyId);
      if (own === undefined) this.waiting.set(keyId, [go]);
      else own.push(go);
    });
  }

  private next(): void {
    const [first] = this.waiting;
    this.isTaken = first !== undefined;
    if (first === undefined) return;
    const [keyId, own] = first;
    const go = own.shift();
    this.waiting.delete(keyId);
    if (own.length > 0) this.waiting.set(keyId, own);
    go?.();
    this.nextTurn(() => this.next());
  }
}
