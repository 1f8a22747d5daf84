// The ledger of one policy: train what is open, else close what is ready, else wait; over and over. It is the only writer of the
// policy's chain in this process. Whatever fails is tried again, later and later; a lost race makes it read the log again.
import { asBacktalkError, type ServiceContext } from '@backtalk/kit';

import type { TrainerConfig } from '../config.js';
import { crowdedOut, crowdedOutReason } from '../domain/crowding.js';
import type { LedgerActivity } from '../events.js';
import type { Ledger, LedgerState } from '../outputs/ledger.js';
import type { BatchClosing } from './batch-closing.js';
import type { PolicyState } from './policy-state.js';
import type { Rebuilding } from './rebuilding.js';
import type { StepTaking } from './step-taking.js';
import type { TrainerTools } from './trainer-tools.js';

export interface LoopParts {
  readonly ledger: Ledger;
  readonly closing: BatchClosing;
  readonly steps: StepTaking;
  readonly rebuilding: Rebuilding;
}

const retryFirstMs = 250;
/** Even without a notification the turns are weighed now and then: what waits grows stale. */
const lookEveryMs = 60_000;

export class LedgerLoop {
  private reading = true;

  constructor(
    private readonly service: ServiceContext<TrainerConfig>,
    private readonly tools: Pick<TrainerTools, 'events' | 'recipe'>,
    private readonly state: PolicyState,
    private readonly parts: LoopParts,
  ) {}

  async run(signal: AbortSignal): Promise<void> {
    const { state } = this;
    const { events } = this.tools;
    const { clock, config, fail } = this.service;
    for (let failures = 0; !signal.aborted;) {
      try {
        const waitMs = await this.turn(signal);
        failures = 0;
        if (waitMs > 0) await state.wake.wait(waitMs, clock, signal);
      } catch (thrown) {
        if (signal.aborted) break;
        failures += 1;
        const error = asBacktalkError(thrown);
        events.activityChanged(state.policy, 'troubled');
        const againInMs = Math.min(retryFirstMs * 2 ** Math.min(failures - 1, 20), config.retryMaxMs);
        events.ledgerTroubled(state.policy, error, failures, againInMs);
        // No waiting mends it.
        if (error.retry === 'stop') return fail(error);
        if (error.code === 'fact_superseded' || error.code === 'ledger_behind') this.reading = true;
        await clock.sleep(againInMs, signal).catch(() => undefined);
      }
    }
    state.close();
    events.activityChanged(state.policy, 'standing_by');
  }

  /** How long to wait before the next turn; 0 = not at all. */
  private async turn(signal: AbortSignal): Promise<number> {
    const { state } = this;
    const { events } = this.tools;
    const { clock } = this.service;
    const { closing, steps } = this.parts;
    if (this.reading) {
      // Deliveries that come meanwhile wait for the new state: the old one is thrown away.
      state.invalidate();
      const read = await this.parts.ledger.read(signal);
      state.ledgerRead(read);
      events.ledgerRead(state.policy, read.chain.last()?.number ?? 0, read.line.newestNumber(), read.settled.size);
      this.reading = false;
    }
    const ledger = await state.ledger();
    if (state.unconfirmed.length > 0) await closing.confirm();
    // What ends a lesson, or is to be forgotten, does not wait for a step whose worker is away.
    if (await closing.takeChanges(ledger, signal)) return 0;
    const open = ledger.chain.open();
    if (open !== undefined) {
      await steps.take(ledger, open, signal);
      return 0;
    }
    const rests = this.rests(ledger);
    events.activityChanged(state.policy, rests ?? 'collecting');
    const untilMs = await closing.closeReady(ledger, rests !== undefined, signal);
    // What people teach comes first.
    if (untilMs === 'closed') return 0;
    if (rests !== 'storage_full' && (await this.parts.rebuilding.next(ledger, signal))) return 0;
    const crowdedMs = rests === undefined ? this.makeRoom() : Infinity;
    return crowdedMs === 0 ? 0 : Math.min(lookEveryMs, Math.max(1, Math.min(untilMs, crowdedMs) - clock.now()));
  }

  /** Nothing closes, and soon nothing more would be delivered. Out: 0 where places were given, else the time of the next look. */
  private makeRoom(): number {
    const { pending } = this.state;
    const { clock, config } = this.service;
    const { turns, untilMs = Infinity } = crowdedOut(pending.held(), this.tools.recipe, clock.now(), config.pendingMax);
    for (const turn of turns) pending.learn(turn, { reason: crowdedOutReason });
    return turns.length > 0 ? 0 : untilMs;
  }

  /** Why no batch may close now. */
  private rests({ chain, line }: LedgerState): LedgerActivity | undefined {
    const { state } = this;
    const { events } = this.tools;
    const { resumedAfter, resumedAfterBatch } = state;
    const otherwise = { resumedAfter, lessonsChangedAt: chain.lessonsChangedAt() };
    const burned = line.heldFor(otherwise, (batch) => chain.repeatsAnother(batch));
    const heldFor = [...burned, ...chain.heldFor(resumedAfterBatch).map((number) => `batch ${number}`)];
    if (heldFor.at(-1) !== state.heldFor.at(-1)) events.trainingHeld(state.policy, heldFor);
    state.heldFor = heldFor;
    if (state.paused) return 'paused';
    if (state.storageFull) return 'storage_full';
    if (line.undecided() !== undefined) return 'awaiting_decision';
    return heldFor.length > 0 ? 'held' : undefined;
  }
}
