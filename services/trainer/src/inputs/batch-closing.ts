// Closes batches: writes the fact, then lets go of the messages of every turn that it takes or settles.
// In: a decision about the turns at the desk. Out: batch.closed in the log. The order is the promise: a message is acked only after the
// fact that settles its turn is stored.
import { isBacktalkError, type Clock, type Held, type Trace } from '@backtalk/kit';
import type { BatchClosed } from '@backtalk/proto/facts';

import { givenUp, settledTurn, settlingBatch, trainingBatch, type BatchPlace } from '../domain/batch-fact.js';
import type { TrainDecision } from '../domain/batch-rule.js';
import { carriedState, type CarriedRule } from '../domain/carried-state.js';
import type { LessonScope } from '../domain/lesson-ledger.js';
import { turnsOf } from '../domain/settled-turns.js';
import type { StoredPlan } from '../domain/step-plan.js';
import type { Settling } from '../domain/weigh-turns.js';
import { trainerErrors } from '../errors.js';
import type { TrainerEvents } from '../events.js';
import type { Books, Ledger } from '../outputs/ledger.js';
import type { StepStore } from '../outputs/step-store.js';
import type { Desk } from './desk.js';

export interface ClosingRule extends CarriedRule {
  readonly lessonScope: LessonScope;
  readonly meanAnswerLength: number;
  readonly seed: number;
  readonly loraRank: number;
}

export interface ClosingParts {
  readonly desk: Desk;
  readonly ledger: Ledger;
  readonly store: StepStore;
  readonly plan: StoredPlan;
  readonly rule: ClosingRule;
  readonly events: TrainerEvents;
  readonly clock: Clock;
}

const acksAtOnce = 64;

export class BatchClosing {
  constructor(private readonly parts: ClosingParts) {}

  async train(books: Books, decision: TrainDecision): Promise<void> {
    const { store, plan, rule } = this.parts;
    const parent = books.line.nextParent();
    await this.checkRank(books, parent);
    await store.keepPlan(plan);
    const step = {
      parent,
      planDigest: plan.digest,
      lessonScope: rule.lessonScope,
      meanAnswerLength: rule.meanAnswerLength,
      seed: rule.seed,
    };
    const batch = trainingBatch(this.place(books), decision, step);
    // The batch goes on in the trace of the sample that came first, with links to those of the others.
    await this.close(books, batch, tracesOf(decision));
    this.parts.desk.taught = {
      version: batch.version,
      saidAtMs: decision.effective.map(({ candidate }) => candidate.saidAtMs),
    };
  }

  async settle(books: Books, settled: readonly Settling[]): Promise<void> {
    await this.close(books, settlingBatch(this.place(books), settled.map(settledTurn), 'settled'));
  }

  /** The batch's step will never be taken: its samples are settled by name, and learning goes on without them. */
  async giveUp(books: Books, batch: BatchClosed, reason: 'step_failed' | 'burned_parent'): Promise<void> {
    await this.close(books, settlingBatch(this.place(books), givenUp(batch, reason), reason));
  }

  private place(books: Books): BatchPlace {
    const { desk, rule } = this.parts;
    return { policy: desk.policy, chain: books.chain, state: carriedState(books.chain, rule) };
  }

  /** An adapter's shape is fixed at a policy's first step. */
  private async checkRank(books: Books, parent: string): Promise<void> {
    const { desk, store, rule } = this.parts;
    const manifest = await store.manifestOfVersion(desk.policy, parent, books.line);
    if (manifest === undefined || manifest.loraRank === rule.loraRank) return;
    throw trainerErrors.rankChanged({ version: parent, rank: manifest.loraRank, configured: rule.loraRank });
  }

  private async close(books: Books, batch: BatchClosed, traces: readonly Trace[] = []): Promise<void> {
    const { desk, ledger, events, clock } = this.parts;
    await ledger.close(books, batch, clock.now(), traces);
    events.batchClosed(batch);
    desk.unconfirmed.push(...desk.pending.take(turnsOf(batch)));
    await this.confirm();
  }

  /** An ack that was not confirmed is tried again: otherwise the message would be kept alive for ever. */
  async confirm(): Promise<void> {
    const { desk } = this.parts;
    const waiting = desk.unconfirmed;
    desk.unconfirmed = [];
    for (let start = 0; start < waiting.length; start += acksAtOnce) {
      const group = waiting.slice(start, start + acksAtOnce);
      const acked = await Promise.all(group.map(isAcked));
      desk.unconfirmed.push(...group.filter((_, index) => acked[index] === false));
    }
  }
}

function tracesOf({ effective, anchors }: TrainDecision): Trace[] {
  return [...effective, ...anchors].flatMap(({ candidate }) => candidate.trace ?? []);
}

async function isAcked(held: Held): Promise<boolean> {
  try {
    await held.ack();
    return true;
  } catch (error) {
    // Given back already: whoever gets it next finds the turn settled.
    return isBacktalkError(error, 'facts_stopped');
  }
}
