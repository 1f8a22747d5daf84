// What one policy's inputs share while this process leads: the books, the turns that wait, the switch, the step in hand.
// Inputs change it, the ledger loop reads it. It holds nothing that the log could not give back.
import type { BacktalkError, Held } from '@backtalk/kit';

import { PendingTurns } from '../domain/pending-turns.js';
import { trainerErrors } from '../errors.js';
import type { Books } from '../outputs/ledger.js';
import { Bell } from './bell.js';

export class Desk {
  readonly bell = new Bell();
  readonly pending = new PendingTurns<Held>();
  paused = false;
  /** The data folder has reached its cap. */
  storageFull = false;
  /** The parent of the step in hand, and how to stop it. */
  step: { readonly parent: string; readonly stop: AbortController } | undefined;
  /** The newest batch that was closed here: which version it makes, and when each of its lessons was said. */
  taught: { readonly version: string; readonly saidAtMs: readonly number[] } | undefined;
  /** Messages of settled turns whose ack the broker has not confirmed yet. */
  unconfirmed: Held[] = [];
  private current: Books | undefined;
  private announce: (books: Books) => void = () => undefined;
  private refuse: (error: BacktalkError) => void = () => undefined;
  private next: Promise<Books>;

  constructor(readonly policy: string) {
    this.next = this.awaited();
  }

  get books(): Books | undefined {
    return this.current;
  }

  /** Facts may be delivered before the ledger has been read. */
  async openBooks(): Promise<Books> {
    return this.current ?? this.next;
  }

  /** The books are read again: who asks for them waits for the new ones. */
  shut(): void {
    if (this.current === undefined) return;
    this.current = undefined;
    this.next = this.awaited();
  }

  open(books: Books): void {
    this.current = books;
    this.announce(books);
    this.bell.ring();
  }

  /** Nobody will open them here any more: another leads. */
  leave(): void {
    this.refuse(trainerErrors.notLeading({}));
  }

  private awaited(): Promise<Books> {
    const books = new Promise<Books>((resolve, reject) => {
      this.announce = resolve;
      this.refuse = reject;
    });
    // Often nobody waits for them.
    books.catch(() => undefined);
    return books;
  }
}
