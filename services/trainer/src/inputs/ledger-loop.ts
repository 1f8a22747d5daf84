// The ledger of one policy, turned round and round: train what is open, else close what is ready, else wait.
// In: rings of the bell, and time. Out: batches and versions, one at a time. It is the only writer of the policy's chain in this process.
// Whatever fails is tried again, later and later, for ever; a lost race makes it read the log again.
import { asBacktalkError, type BacktalkError, type Clock } from '@backtalk/kit';

import { decideBatch, settleOrWait, type BatchDecision, type BatchRule } from '../domain/batch-rule.js';
import { carriedState, type CarriedRule } from '../domain/carried-state.js';
import { weighTurns, type WeighRule } from '../domain/weigh-turns.js';
import type { LedgerState, TrainerEvents } from '../events.js';
import type { Books } from '../outputs/ledger.js';
import type { BatchClosing } from './batch-closing.js';
import type { Desk } from './desk.js';
import type { StepTaking } from './step-taking.js';

export interface LoopParts {
  readonly desk: Desk;
  readonly closing: BatchClosing;
  readonly steps: StepTaking;
  /** Reads the ledger and lets go of what it settles. */
  readonly readBooks: (signal: AbortSignal) => Promise<Books>;
  /** Time before which nothing that is settled can come again. */
  readonly openSince: (signal: AbortSignal) => Promise<number>;
  readonly rule: BatchRule & WeighRule & CarriedRule;
  readonly retryMaxMs: number;
  readonly events: TrainerEvents;
  readonly clock: Clock;
  readonly onFatal: (error: BacktalkError) => void;
}

const retryFirstMs = 250;
/** Even without a ring the turns are weighed now and then: what waits grows stale. */
const lookEveryMs = 60_000;
const forgetEveryMs = 3_600_000;

export class LedgerLoop {
  private reading = true;
  private forgotAtMs: number;

  constructor(private readonly parts: LoopParts) {
    this.forgotAtMs = parts.clock.now();
  }

  async run(signal: AbortSignal): Promise<void> {
    const { desk, clock, events } = this.parts;
    for (let failures = 0; !signal.aborted;) {
      try {
        const waitMs = await this.turn(signal);
        failures = 0;
        if (waitMs > 0) await desk.bell.wait(waitMs, clock, signal);
      } catch (thrown) {
        if (signal.aborted) break;
        failures += 1;
        if (!(await this.troubled(asBacktalkError(thrown), failures, signal))) return;
      }
    }
    desk.leave();
    events.stateChanged(desk.policy, 'standing_by');
  }

  /** False when no waiting mends it. */
  private async troubled(error: BacktalkError, failures: number, signal: AbortSignal): Promise<boolean> {
    const { desk, events, clock, retryMaxMs, onFatal } = this.parts;
    this.state('troubled');
    const againInMs = Math.min(retryFirstMs * 2 ** Math.min(failures - 1, 20), retryMaxMs);
    events.ledgerTroubled(desk.policy, error, failures, againInMs);
    if (error.retry === 'stop') {
      onFatal(error);
      return false;
    }
    if (error.code === 'fact_superseded') this.reading = true;
    await clock.sleep(againInMs, signal).catch(() => undefined);
    return true;
  }

  /** How long to wait before the next turn; 0 = not at all. */
  private async turn(signal: AbortSignal): Promise<number> {
    const { desk, closing, steps, readBooks } = this.parts;
    if (this.reading) {
      // Verdicts that come meanwhile wait for the new books: the old ones are thrown away.
      desk.shut();
      desk.open(await readBooks(signal));
    }
    this.reading = false;
    const books = await desk.openBooks();
    await this.forget(books, signal);
    if (desk.unconfirmed.length > 0) await closing.confirm();
    const open = books.chain.open();
    if (open === undefined) return this.close(books);
    this.state('training');
    await steps.take(books, open, signal);
    return 0;
  }

  /** Memory for what is settled stays as large as what is open, however long this runs. */
  private async forget(books: Books, signal: AbortSignal): Promise<void> {
    const { clock, openSince } = this.parts;
    if (clock.now() - this.forgotAtMs < forgetEveryMs) return;
    books.settled.forgetBefore(await openSince(signal));
    this.forgotAtMs = clock.now();
  }

  private async close(books: Books): Promise<number> {
    const { closing, clock } = this.parts;
    const decision = this.decide(books);
    switch (decision.kind) {
      case 'train':
        await closing.train(books, decision);
        return 0;
      case 'settle':
        await closing.settle(books, decision.settled);
        return 0;
      case 'wait':
        return Math.min(lookEveryMs, Math.max(1, (decision.untilMs ?? Infinity) - clock.now()));
    }
  }

  private decide(books: Books): BatchDecision {
    const { desk, rule, events, clock } = this.parts;
    const { chain, line } = books;
    const { lessons, baselines } = carriedState(chain, rule);
    const state = { lessons, baselines, versionsBack: line.versionsBackFrom(line.nextParent()) };
    const waiting = weighTurns(desk.pending.candidates(), state, rule);
    const funnel = { effective: waiting.effective.length, idle: waiting.idle.length, settled: waiting.settled.length };
    events.turnsWeighed(desk.policy, funnel, lessons);
    const held = heldBy(desk, line.undecided());
    this.state(held ?? 'collecting');
    return held === undefined
      ? decideBatch(waiting, rule, clock.now())
      : settleOrWait(waiting, rule, clock.now(), undefined);
  }

  private state(state: LedgerState): void {
    this.parts.events.stateChanged(this.parts.desk.policy, state);
  }
}

function heldBy({ paused, storageFull }: Desk, undecided: string | undefined): LedgerState | undefined {
  if (paused) return 'paused';
  if (storageFull) return 'storage_full';
  return undecided === undefined ? undefined : 'awaiting_decision';
}
