// Takes the step of a closed batch, or gives the batch up; an error means the same step later again. Everything is made from the fact
// and the log, so that a repeat after a crash asks for the same bytes.
import { asBacktalkError, type Clock, type TriedStep } from '@backtalk/kit';
import type { BatchClosed } from '@backtalk/proto/facts';

import { costsATry, failsAgain, stepTriesMax } from '../domain/batch-chain.js';
import type { GivingUp } from '../domain/batch-fact.js';
import { guardBounds, trippedGuards } from '../domain/step-guards.js';
import { callOf } from '../domain/train-request.js';
import { manifestOf, reportOf, trainedFact } from '../domain/weights-manifest.js';
import type { Ledger, LedgerState } from '../outputs/ledger.js';
import type { TrainOptions } from '../outputs/training-worker.js';
import type { BatchClosing } from './batch-closing.js';
import type { PolicyState } from './policy-state.js';
import { buildStep, stepSource, type StepSource } from './step-building.js';
import type { TrainerTools } from './trainer-tools.js';
import type { HeldWorker } from './worker-pool.js';

interface Prepared {
  readonly source: StepSource;
  readonly worker: HeldWorker['worker'];
  /** The tries before this one. */
  readonly before: TriedStep;
}

export class StepTaking {
  constructor(
    private readonly tools: TrainerTools,
    private readonly state: PolicyState,
    private readonly ledger: Ledger,
    private readonly closing: BatchClosing,
    private readonly clock: Clock,
  ) {}

  async take(ledger: LedgerState, batch: BatchClosed, signal: AbortSignal): Promise<void> {
    const { events } = this.tools;
    const hopeless = this.hopeless(ledger, batch);
    if (hopeless !== undefined) return this.giveUp(ledger, batch, hopeless);
    events.stepStarted(batch);
    const { number, parent } = batch;
    const stop = new AbortController();
    this.state.step = { batch: number, parent, stop };
    const stopped = AbortSignal.any([signal, stop.signal]);
    let held: HeldWorker | undefined;
    let outcome: 'well' | 'failed' = 'failed';
    try {
      let prepared: Prepared | string;
      try {
        held = await this.hold(batch, stopped);
        prepared = await this.prepare(ledger, batch, held);
      } catch (error) {
        const why = signal.aborted ? undefined : this.hopeless(ledger, batch);
        if (why !== undefined) return await this.giveUp(ledger, batch, why);
        events.stepPutOff(batch, asBacktalkError(error).code);
        throw error;
      }
      if (typeof prepared === 'string') return await this.giveUp(ledger, batch, 'step_failed', prepared);
      await this.attempt(ledger, batch, prepared, { signal, stopped });
      outcome = 'well';
    } finally {
      this.state.step = undefined;
      held?.release(outcome);
    }
  }

  private async hold(batch: BatchClosed, signal: AbortSignal): Promise<HeldWorker> {
    const { workers, events } = this.tools;
    const { policy } = batch;
    const held = await workers.hold({ policy, call: callOf(batch) }, signal, () => {
      events.activityChanged(policy, 'queued');
    });
    events.activityChanged(policy, 'training');
    return held;
  }

  /** All that one try needs, or the code for which there is none. */
  private async prepare(ledger: LedgerState, batch: BatchClosed, held: HeldWorker): Promise<Prepared | string> {
    const { tries } = this.tools;
    const { policy, number } = batch;
    const source = await stepSource(this.tools, ledger, batch, held.base);
    const before = await tries.of(policy, number);
    if (before.tries >= stepTriesMax) return before.code || 'never_ended';
    // From here on, whatever ends this process or the worker has cost the batch a try.
    await tries.keep(policy, { batch: number, tries: before.tries + 1, code: '' });
    return { source, before, worker: held.worker };
  }

  private async attempt(
    ledger: LedgerState,
    batch: BatchClosed,
    { source, worker, before }: Prepared,
    { signal, stopped }: { readonly signal: AbortSignal; readonly stopped: AbortSignal },
  ): Promise<void> {
    const { tries, events } = this.tools;
    const { policy, number } = batch;
    const span = events.stepSpan(batch, ledger.trace);
    try {
      await this.train(ledger, source, worker, { signal: stopped, trace: span?.trace });
      span?.end();
    } catch (thrown) {
      const error = asBacktalkError(thrown);
      span?.end(error.code);
      // Stopped from here: that is no failure of the batch.
      if (signal.aborted || !costsATry(error.code)) await tries.keep(policy, before).catch(() => undefined);
      else await tries.keep(policy, { batch: number, tries: before.tries + 1, code: error.code });
      if (signal.aborted) throw thrown;
      const hopeless = this.hopeless(ledger, batch) ?? (failsAgain(error.code) ? 'step_failed' : undefined);
      if (hopeless !== undefined) return await this.giveUp(ledger, batch, hopeless, error.code);
      events.stepPutOff(batch, error.code);
      throw error;
    }
  }

  private async train(
    ledger: LedgerState,
    source: StepSource,
    worker: HeldWorker['worker'],
    { signal, trace }: TrainOptions,
  ): Promise<void> {
    const { store, events, recipe } = this.tools;
    const { batch, plan } = source;
    const startedMs = this.clock.now();
    const step = await buildStep(this.tools, source, signal);
    if (step.request.samples.length === 0) return this.giveUp(ledger, batch, 'step_failed', 'nothing_left');
    const result = await worker.train(step.request, { signal, trace });
    const letGo = () => store.names.letGo(result, ledger.line);
    // The parent may have been burned in the last moment: nothing is built upon it.
    if (ledger.line.isTainted(batch.parent)) {
      await letGo();
      return this.giveUp(ledger, batch, 'burned_parent');
    }
    const report = reportOf(result.report, step);
    const guards = trippedGuards(batch, report, guardBounds(plan.training, recipe));
    for (const guard of guards) events.guardActed(batch, guard);
    const skipped = guards.find(({ action }) => action === 'skip');
    if (skipped !== undefined) {
      events.stepMeasured(batch, report);
      await letGo();
      return this.giveUp(ledger, batch, 'step_skipped', skipped.why);
    }
    const manifestDigest = await store.keepManifest(manifestOf(batch, plan, result));
    const fact = trainedFact(batch, manifestDigest, report);
    await this.ledger.trained(ledger, fact, this.clock.now(), trace);
    events.stepEnded(batch, 'trained');
    events.stepMeasured(batch, report);
    events.versionTrained(batch, ledger.line.newestNumber(), report, (this.clock.now() - startedMs) / 1_000);
  }

  /** Why the batch is not worth another look, whatever the worker says. */
  private hopeless({ line }: LedgerState, { parent, number }: BatchClosed): GivingUp | undefined {
    if (line.isTainted(parent)) return 'burned_parent';
    return this.state.abandoned === number ? 'abandoned' : undefined;
  }

  private async giveUp(ledger: LedgerState, batch: BatchClosed, reason: GivingUp, code = ''): Promise<void> {
    await this.closing.giveUp(ledger, batch, reason, code);
    this.tools.events.stepEnded(batch, reason);
    if (reason !== 'burned_parent') this.tools.events.batchAbandoned(batch, reason, code);
  }
}
