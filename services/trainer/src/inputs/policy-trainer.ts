// Everything that one policy needs while this process leads: its facts, its switch, its ledger loop, its sweeps.
// In: a signal that aborts when leadership is lost. Out: nothing; it resolves when all of it has stopped.
import {
  consumeFacts,
  type BacktalkError,
  type BlobStore,
  type Broker,
  type Clock,
  type FactConsumer,
  type FactReader,
  type Logger,
  type Metrics,
} from '@backtalk/kit';

import type { BatchRule } from '../domain/batch-rule.js';
import type { StoredPlan } from '../domain/step-plan.js';
import type { WeighRule } from '../domain/weigh-turns.js';
import type { TrainerEvents } from '../events.js';
import type { Books, Ledger } from '../outputs/ledger.js';
import type { ProgressBoard } from '../outputs/progress-board.js';
import type { StepStore } from '../outputs/step-store.js';
import type { TrainingWorker } from '../outputs/training-worker.js';
import type { TurnLog } from '../outputs/turn-log.js';
import { BatchClosing, type ClosingRule } from './batch-closing.js';
import { Desk } from './desk.js';
import { judgedTurns } from './judged-turns.js';
import { watchLearning } from './learning-switch.js';
import { LedgerLoop } from './ledger-loop.js';
import { stagedVersions } from './staged-versions.js';
import { StepTaking } from './step-taking.js';
import { sweepNowAndThen } from './sweep-timer.js';

export interface PolicyRule extends BatchRule, WeighRule, ClosingRule {}

export interface PolicyParts {
  readonly policy: string;
  readonly rule: PolicyRule;
  readonly plan: StoredPlan;
  readonly broker: Broker;
  readonly reader: FactReader;
  readonly blobs: BlobStore;
  readonly ledger: Ledger;
  readonly turns: TurnLog;
  readonly store: StepStore;
  readonly worker: TrainingWorker;
  readonly board: ProgressBoard;
  readonly ackWaitMs: number;
  readonly pendingMax: number;
  readonly retryMaxMs: number;
  readonly sweepEveryMs: number;
  readonly sweepGraceMs: number;
  readonly events: TrainerEvents;
  readonly logger: Logger;
  readonly metrics: Metrics;
  readonly clock: Clock;
  readonly onFatal: (error: BacktalkError) => void;
}

/** Each delivery reads the turn's facts: three small reads. */
const readersMax = 8;
const stopDeadlineMs = 3_000;

export async function trainPolicy(parts: PolicyParts, signal: AbortSignal): Promise<void> {
  const { broker, policy, events } = parts;
  const desk = new Desk(policy);
  const consumer = judgedConsumer(parts, desk);
  const staged = stagedConsumer(parts, desk);
  try {
    await watchLearning(broker, desk, events, signal);
    await Promise.all([consumer.start(), staged.start()]);
    await Promise.all([
      ledgerLoop(parts, desk, consumer).run(signal),
      sweepNowAndThen({ ...sweepSettings(parts), desk }, signal),
    ]);
  } finally {
    await Promise.all([consumer.stop(stopDeadlineMs), staged.stop(stopDeadlineMs)]);
  }
}

function sweepSettings({ store, sweepEveryMs: everyMs, sweepGraceMs: graceMs, events, clock }: PolicyParts) {
  return { store, everyMs, graceMs, events, clock };
}

function judgedConsumer(parts: PolicyParts, desk: Desk): FactConsumer<'turnJudged'> {
  const { policy, ledger, turns, events, pendingMax } = parts;
  const consumer: FactConsumer<'turnJudged'> = consumeFacts({
    ...consumption(parts),
    facts: ['turnJudged'],
    filter: { turnJudged: { policy } },
    handlers: {
      turnJudged: judgedTurns({ desk, ledger, turns, events, position: () => consumer.position('turnJudged') }),
    },
    concurrency: readersMax,
    maxHeld: pendingMax,
  });
  return consumer;
}

function stagedConsumer(parts: PolicyParts, desk: Desk): FactConsumer<'weightsStaged'> {
  const { policy, events } = parts;
  return consumeFacts({
    ...consumption(parts),
    facts: ['weightsStaged'],
    filter: { weightsStaged: { policy } },
    handlers: { weightsStaged: stagedVersions(desk, events) },
    concurrency: 1,
  });
}

function consumption({ broker, blobs, policy, ackWaitMs, logger, metrics, clock, onFatal }: PolicyParts) {
  return { broker, blobs, service: 'trainer', durableSuffix: policy, ackWaitMs, logger, metrics, clock, onFatal };
}

function ledgerLoop(parts: PolicyParts, desk: Desk, consumer: FactConsumer<'turnJudged'>): LedgerLoop {
  const { ledger, store, turns, worker, board, plan, rule, events, clock, retryMaxMs, onFatal } = parts;
  const closing = new BatchClosing({ desk, ledger, store, plan, rule, events, clock });
  const steps = new StepTaking({ desk, ledger, store, turns, worker, board, closing, events, clock });
  const readBooks = (signal: AbortSignal): Promise<Books> => booksOf(parts, desk, consumer, signal);
  const openSince = (signal: AbortSignal) => openSinceMs(parts, consumer, signal);
  return new LedgerLoop({ desk, closing, steps, readBooks, openSince, rule, retryMaxMs, events, clock, onFatal });
}

/** Time of the oldest judged fact that is not settled for good; now, when all are. */
async function openSinceMs(
  { ledger, clock }: PolicyParts,
  consumer: FactConsumer<'turnJudged'>,
  signal: AbortSignal,
): Promise<number> {
  const { settledSequence } = await consumer.position('turnJudged');
  return (await ledger.judgedTimeFrom(settledSequence + 1, signal)) ?? clock.now();
}

/** The books, and off the desk whatever they settle: another trainer may have closed batches since they were read last. */
async function booksOf(
  parts: PolicyParts,
  desk: Desk,
  consumer: FactConsumer<'turnJudged'>,
  signal: AbortSignal,
): Promise<Books> {
  const { policy, ledger, events } = parts;
  const books = await ledger.read(await openSinceMs(parts, consumer, signal), signal);
  const settled = desk.pending.candidates().flatMap(({ turn }) => (books.settled.has(turn) ? [turn] : []));
  desk.unconfirmed.push(...desk.pending.take(settled));
  events.booksRead(policy, books.chain.last()?.number ?? 0, books.line.versions().length, books.settled.size);
  return books;
}
