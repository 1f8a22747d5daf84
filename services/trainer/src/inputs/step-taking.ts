// Takes the step of a closed batch: gathers, trains, stores, says so.
// In: a batch that is closed and not trained. Out: weights.trained; or the batch given up; or an error, and the same step later again.
// Everything is made from the fact and the log, so that a repeat after a crash asks for the same bytes.
import { asBacktalkError, type BacktalkError, type Clock, type Trace } from '@backtalk/kit';
import type { BatchClosed } from '@backtalk/proto/facts';
import type { TrainResult } from '@backtalk/proto/training';

import { givesUp } from '../domain/step-failure.js';
import type { StepPlan } from '../domain/step-plan.js';
import { stepOf, type SampleSource, type Step } from '../domain/train-request.js';
import { versionNumber } from '../domain/version-name.js';
import { manifestOf, trainedFact } from '../domain/weights-manifest.js';
import type { TrainerEvents } from '../events.js';
import type { Books, Ledger } from '../outputs/ledger.js';
import type { ProgressBoard } from '../outputs/progress-board.js';
import type { StepStore } from '../outputs/step-store.js';
import type { TrainingWorker } from '../outputs/training-worker.js';
import type { TurnLog } from '../outputs/turn-log.js';
import type { BatchClosing } from './batch-closing.js';
import type { Desk } from './desk.js';

export interface StepParts {
  readonly desk: Desk;
  readonly ledger: Ledger;
  readonly store: StepStore;
  readonly turns: TurnLog;
  readonly worker: TrainingWorker;
  readonly board: ProgressBoard;
  readonly closing: BatchClosing;
  readonly events: TrainerEvents;
  readonly clock: Clock;
}

export class StepTaking {
  /** Failures in a row after the worker had begun, of the batch in hand. */
  private broken = { batch: 0, steps: 0 };

  constructor(private readonly parts: StepParts) {}

  async take(books: Books, batch: BatchClosed, signal: AbortSignal): Promise<void> {
    const { desk, store, board, events } = this.parts;
    if (books.line.isTainted(batch.parent)) return this.giveUp(books, batch, 'burned_parent');
    const plan = await store.planOf(batch);
    const parent = await store.manifestOfVersion(batch.policy, batch.parent, books.line);
    const step = stepOf({ batch, plan, parent, sources: await this.sources(batch) });
    if (step.request.samples.length === 0) return this.giveUp(books, batch, 'step_failed');

    const stop = new AbortController();
    desk.step = { parent: batch.parent, stop };
    board.started(batch, step.request.samples.length);
    events.stepStarted(batch, step.request.samples.length);
    const span = events.stepSpan(batch, books.trace);
    try {
      await this.train(books, batch, plan, step, AbortSignal.any([signal, stop.signal]), span?.trace);
      span?.end();
    } catch (thrown) {
      span?.end(asBacktalkError(thrown).code);
      if (signal.aborted) throw thrown;
      await this.failed(books, batch, asBacktalkError(thrown));
    } finally {
      desk.step = undefined;
    }
  }

  private async sources(batch: BatchClosed): Promise<Map<string, SampleSource>> {
    const sources = new Map<string, SampleSource>();
    for (const sample of batch.samples) {
      const source = await this.parts.turns.source(sample);
      if (source !== undefined) sources.set(sample.turn, source);
    }
    return sources;
  }

  private async train(
    books: Books,
    batch: BatchClosed,
    plan: StepPlan,
    step: Step,
    signal: AbortSignal,
    trace: Trace | undefined,
  ): Promise<void> {
    const { worker, board, clock } = this.parts;
    const startedMs = clock.now();
    const broken = this.broken.batch === batch.number ? this.broken.steps : 0;
    const result = await worker.train(step.request, {
      signal,
      trace,
      onProgress: (progress) => {
        // Until the step ends well, it counts as broken.
        this.broken = { batch: batch.number, steps: broken + 1 };
        board.moved(progress);
      },
    });
    this.broken = { batch: 0, steps: 0 };
    // The parent may have been burned in the last moment: nothing is built upon it.
    if (books.line.isTainted(batch.parent)) return this.giveUp(books, batch, 'burned_parent');
    await this.publish(books, batch, plan, step, result, { startedMs, trace });
  }

  private async publish(
    books: Books,
    batch: BatchClosed,
    plan: StepPlan,
    step: Step,
    result: TrainResult,
    { startedMs, trace }: { readonly startedMs: number; readonly trace: Trace | undefined },
  ): Promise<void> {
    const { ledger, store, board, events, clock } = this.parts;
    const manifestDigest = await store.keepManifest(manifestOf(batch, plan, result));
    const fact = trainedFact(batch, manifestDigest, result.report, step.leftOut);
    await ledger.trained(books, fact, clock.now(), trace);
    board.ended('done');
    events.stepEnded(batch, 'trained');
    events.versionTrained(
      batch,
      versionNumber(batch.policy, batch.version) ?? 0,
      fact.report,
      (clock.now() - startedMs) / 1_000,
    );
  }

  private async failed(books: Books, batch: BatchClosed, error: BacktalkError): Promise<void> {
    const { board, events } = this.parts;
    if (books.line.isTainted(batch.parent)) return this.giveUp(books, batch, 'burned_parent');
    const brokenSteps = this.broken.batch === batch.number ? this.broken.steps : 0;
    if (givesUp({ code: error.code, brokenSteps })) return this.giveUp(books, batch, 'step_failed');
    board.ended('waiting');
    events.stepEnded(batch, 'interrupted');
    throw error;
  }

  private async giveUp(books: Books, batch: BatchClosed, reason: 'step_failed' | 'burned_parent'): Promise<void> {
    const { board, closing, events } = this.parts;
    await closing.giveUp(books, batch, reason);
    board.ended('given_up');
    events.stepEnded(batch, reason);
  }
}
