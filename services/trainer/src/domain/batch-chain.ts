// Where the ledger of a policy stands: the batch that must still be trained, the next numbers, and the last report.
import { versionNumber } from '@backtalk/kit';
import type { BatchClosed, WeightsTrained } from '@backtalk/proto/facts';

/** A fact of this kind gives up the training batch before it: its samples are settled and its version never comes to be. */
const abandonedReason = new Set<string>(['step_failed', 'burned_parent']);

export class BatchChain {
  private lastBatch: BatchClosed | undefined;
  private lastTraining: BatchClosed | undefined;
  private lastReport: WeightsTrained | undefined;
  private abandoned = false;
  private batchAt = 0;
  private trainedAt = 0;
  private highestVersion = 0;

  constructor(private readonly policy: string) {}

  closed(batch: BatchClosed, sequence: number): void {
    if (sequence <= this.batchAt) return;
    this.lastBatch = batch;
    this.batchAt = sequence;
    if (takesAStep(batch)) {
      this.lastTraining = batch;
      this.abandoned = false;
      this.highestVersion = Math.max(this.highestVersion, versionNumber(this.policy, batch.version) ?? 0);
    } else if (abandonedReason.has(batch.why)) {
      this.abandoned = true;
    }
  }

  trained(fact: WeightsTrained, sequence: number): void {
    if (sequence <= this.trainedAt) return;
    this.trainedAt = sequence;
    this.lastReport = fact;
  }

  /** Closed, not trained, not given up: the step that must be taken before anything else. */
  open(): BatchClosed | undefined {
    if (this.lastTraining === undefined || this.abandoned || this.isTrained(this.lastTraining)) return undefined;
    return this.lastTraining;
  }

  /** The report of the step of the very last fact: what the next fact has to take in. Later facts have taken it in already. */
  unreadReport(): { batch: BatchClosed; trained: WeightsTrained } | undefined {
    const batch = this.lastBatch;
    if (batch === undefined || this.lastReport === undefined || !this.isTrained(batch)) return undefined;
    return { batch, trained: this.lastReport };
  }

  private isTrained(batch: BatchClosed): boolean {
    return takesAStep(batch) && this.lastReport !== undefined && this.lastReport.batch >= batch.number;
  }

  last(): BatchClosed | undefined {
    return this.lastBatch;
  }

  nextNumber(): number {
    return (this.lastBatch?.number ?? 0) + 1;
  }

  /** Names are never reused: a failed batch's version leaves a gap. */
  nextVersionNumber(): number {
    return this.highestVersion + 1;
  }

  /** Expected sequences of the next publish on either subject. */
  batchSequence(): number {
    return this.batchAt;
  }

  trainedSequence(): number {
    return this.trainedAt;
  }
}

function takesAStep(batch: BatchClosed): boolean {
  return batch.samples.length > 0;
}

/** The training worker's own words for "the same batch would fail again". */
const inTheData = new Set(['step_not_finite', 'request_invalid']);
/** A batch that ends the worker each time must not hold up learning. */
const brokenStepsMax = 10;

/**
 * Only what lies in the batch itself gives it up: a worker that is not there or wrongly set up costs no sample.
 * @param brokenSteps failures in a row after the worker had begun with this batch
 */
export function givesUp(code: string, brokenSteps: number): boolean {
  return inTheData.has(code) || brokenSteps >= brokenStepsMax;
}
