// What one policy's inputs share while this process leads: the ledger's state, the turns that wait, the switches, the step in flight.
// Inputs change it, the ledger loop reads it. It holds nothing that the log could not give back.
import type { AskedRebuild, BacktalkError, Held } from '@backtalk/kit';

import { PendingTurns } from '../domain/pending-turns.js';
import { trainerErrors } from '../errors.js';
import type { LedgerState } from '../outputs/ledger.js';
import { WakeSignal } from './wake-signal.js';

export class PolicyState {
  readonly wake = new WakeSignal();
  readonly pending = new PendingTurns<Held>();
  paused = false;
  /** Number of the version that was the newest when an operator last said that learning goes on. */
  resumedAfter = 0;
  /** Number of the newest batch then. */
  resumedAfterBatch = 0;
  /** Versions burned in a row, or batches given up in a row, for which training rests. */
  heldFor: readonly string[] = [];
  /** The data folder has reached its cap. */
  storageFull = false;
  /** The batch that an operator has given up. */
  abandoned: number | undefined;
  /** The version that is to be made again. */
  asked: AskedRebuild | undefined;
  /** Files that were made again, by digest, and when: the sweep leaves them as those of a new version. */
  readonly remade = new Map<string, number>();
  /** The step in flight: its batch, the parent, and how to stop it. */
  step: { readonly batch: number; readonly parent: string; readonly stop: AbortController } | undefined;
  /** The newest batch that was closed here: which version it makes, and when each of its lessons was said. */
  closed: { readonly version: string; readonly saidAtMs: readonly number[] } | undefined;
  /** The version whose progress is asked for here, how often in vain, and when again: an engine may be away for a while. */
  measuring = { version: '', tries: 0, againMs: 0 };
  /** Messages of settled turns whose ack the broker has not confirmed yet. */
  unconfirmed: Held[] = [];
  private current: LedgerState | undefined;
  private resolveNext: (ledger: LedgerState) => void = () => undefined;
  private rejectNext: (error: BacktalkError) => void = () => undefined;
  private next: Promise<LedgerState>;

  constructor(readonly policy: string) {
    this.next = this.nextRead();
  }

  /** Facts may be delivered before the ledger has been read, or while it is read again: then this waits. */
  async ledger(): Promise<LedgerState> {
    return this.current ?? this.next;
  }

  /** The ledger is being read again: `ledger` waits for the new state. */
  invalidate(): void {
    if (this.current === undefined) return;
    this.current = undefined;
    this.next = this.nextRead();
  }

  /** What the ledger settles waits no longer: another trainer may have closed batches since it was read last. */
  ledgerRead(ledger: LedgerState): void {
    const settled = this.pending.candidates().flatMap(({ turn }) => (ledger.settled.has(turn) ? [turn] : []));
    this.unconfirmed.push(...this.pending.take(settled));
    this.current = ledger;
    this.resolveNext(ledger);
    this.wake.notify();
  }

  /** The ledger is read here no more: another process leads. */
  close(): void {
    this.rejectNext(trainerErrors.notLeading({}));
  }

  private nextRead(): Promise<LedgerState> {
    const next = new Promise<LedgerState>((resolve, reject) => {
      this.resolveNext = resolve;
      this.rejectNext = reject;
    });
    // Often nothing waits for it.
    next.catch(() => undefined);
    return next;
  }
}
