// Who goes on next?
//
// In: keys whose requests begin or end, or whose engines have said more. Out: for each key a few goes in every turn of the
// event loop, whatever each of them has waiting; where many keys wait, they take turns. Hundreds of requests that one key
// begins at once, or whose answers go on at once, would otherwise be worked through before anything is read of what others
// sent. No I/O.

interface TurnBounds {
  /** Goes of one key in one turn of the event loop. */
  readonly ofKey: number;
  /** Goes of all keys together. */
  readonly inAll: number;
}

export class FairTurns {
  /** What waits by key, the key whose go is next first. */
  private readonly waiting = new Map<string, (() => void)[]>();
  /** Goes in this turn of the event loop, by key. */
  private readonly gone = new Map<string, number>();
  private goneInAll = 0;

  /** @param nextTurn calls back in the next turn of the event loop, when it has read what came */
  constructor(
    private readonly nextTurn: (go: () => void) => void,
    private readonly bounds: TurnBounds,
  ) {}

  /** Resolves when the key may go on; at once where it has a go left in this turn. */
  async of(keyId: string): Promise<void> {
    if (this.takeGo(keyId)) return;
    await new Promise<void>((go) => {
      const own = this.waiting.get(keyId);
      if (own === undefined) this.waiting.set(keyId, [go]);
      else own.push(go);
    });
  }

  private takeGo(keyId: string): boolean {
    const gone = this.gone.get(keyId) ?? 0;
    if (gone >= this.bounds.ofKey || this.goneInAll >= this.bounds.inAll) return false;
    if (this.goneInAll === 0) this.nextTurn(() => this.next());
    this.gone.set(keyId, gone + 1);
    this.goneInAll += 1;
    return true;
  }

  private next(): void {
    this.gone.clear();
    this.goneInAll = 0;
    for (const [keyId, own] of [...this.waiting]) {
      if (this.goneInAll >= this.bounds.inAll) return;
      this.waiting.delete(keyId);
      while (own.length > 0 && this.takeGo(keyId)) own.shift()?.();
      if (own.length > 0) this.waiting.set(keyId, own);
    }
  }
}
