// Takes the step of a closed batch, or gives the batch up; an error means the same step later again. Everything is made from the fact
// and the log, so that a repeat after a crash asks for the same bytes.
import { asBacktalkError, type Clock, type Trace } from '@backtalk/kit';
import type { BatchClosed } from '@backtalk/proto/facts';

import { givesUp } from '../domain/batch-chain.js';
import type { StepPlan } from '../domain/step-plan.js';
import { stepOf, type SampleSource, type Step } from '../domain/train-request.js';
import { manifestOf, trainedFact } from '../domain/weights-manifest.js';
import type { Ledger, LedgerState } from '../outputs/ledger.js';
import type { BatchClosing } from './batch-closing.js';
import type { PolicyState } from './policy-state.js';
import type { TrainerTools } from './trainer-tools.js';

export class StepTaking {
  /** Failures in a row after the worker had begun, of the batch in flight. */
  private broken = { batch: 0, steps: 0 };

  constructor(
    private readonly tools: TrainerTools,
    private readonly state: PolicyState,
    private readonly ledger: Ledger,
    private readonly closing: BatchClosing,
    private readonly clock: Clock,
  ) {}

  async take(ledger: LedgerState, batch: BatchClosed, signal: AbortSignal): Promise<void> {
    const { store, turns, events } = this.tools;
    if (ledger.line.isTainted(batch.parent)) return this.giveUp(ledger, batch, 'burned_parent');
    const plan = await store.planOf(batch);
    const parent = await store.manifestOfVersion(batch.policy, batch.parent, ledger.line);
    const sources = new Map<string, SampleSource>();
    for (const sample of batch.samples) {
      const source = await turns.source(sample);
      if (source !== undefined) sources.set(sample.turn, source);
    }
    const step = stepOf(batch, plan, parent, sources);
    if (step.request.samples.length === 0) return this.giveUp(ledger, batch, 'step_failed');

    const stop = new AbortController();
    this.state.step = { parent: batch.parent, stop };
    events.stepStarted(batch, step.request.samples.length);
    const span = events.stepSpan(batch, ledger.trace);
    try {
      await this.train(ledger, batch, plan, step, AbortSignal.any([signal, stop.signal]), span?.trace);
      span?.end();
    } catch (thrown) {
      const error = asBacktalkError(thrown);
      span?.end(error.code);
      if (signal.aborted) throw thrown;
      if (ledger.line.isTainted(batch.parent)) return await this.giveUp(ledger, batch, 'burned_parent');
      if (givesUp(error.code, this.brokenSteps(batch))) return await this.giveUp(ledger, batch, 'step_failed');
      events.stepEnded(batch, 'interrupted');
      throw error;
    } finally {
      this.state.step = undefined;
    }
  }

  private async train(
    ledger: LedgerState,
    batch: BatchClosed,
    plan: StepPlan,
    { request, leftOut }: Step,
    signal: AbortSignal,
    trace: Trace | undefined,
  ): Promise<void> {
    const { worker, store, events } = this.tools;
    const startedMs = this.clock.now();
    const broken = this.brokenSteps(batch);
    const onProgress = (): void => {
      // Until the step ends well, it counts as broken.
      this.broken = { batch: batch.number, steps: broken + 1 };
    };
    const result = await worker.train(request, { signal, trace, onProgress });
    this.broken = { batch: 0, steps: 0 };
    // The parent may have been burned in the last moment: nothing is built upon it.
    if (ledger.line.isTainted(batch.parent)) return this.giveUp(ledger, batch, 'burned_parent');
    const manifestDigest = await store.keepManifest(manifestOf(batch, plan, result));
    const fact = trainedFact(batch, manifestDigest, result.report, leftOut);
    await this.ledger.trained(ledger, fact, this.clock.now(), trace);
    events.stepEnded(batch, 'trained');
    events.versionTrained(batch, ledger.line.newestNumber(), fact.report, (this.clock.now() - startedMs) / 1_000);
  }

  private brokenSteps(batch: BatchClosed): number {
    return this.broken.batch === batch.number ? this.broken.steps : 0;
  }

  private async giveUp(
    ledger: LedgerState,
    batch: BatchClosed,
    reason: 'step_failed' | 'burned_parent',
  ): Promise<void> {
    await this.closing.giveUp(ledger, batch, reason);
    this.tools.events.stepEnded(batch, reason);
  }
}
