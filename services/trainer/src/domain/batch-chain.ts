// Where the ledger of a policy stands: the batch that must still be trained, the next numbers, and the last report.
import { givenUpBy, givenUpInARow, isHeld, versionNumber } from '@backtalk/kit';
import type { BatchClosed, BatchSample, WeightsTrained } from '@backtalk/proto/facts';

import { isOfTurn } from './rehearsal.js';

/** Versions over which one voice's share is bounded, the next one not counted. */
const versionsInWindow = 7;
const versionsKept = 4 * versionsInWindow;

export class BatchChain {
  private lastBatch: BatchClosed | undefined;
  private lastTraining: BatchClosed | undefined;
  private lastReport: WeightsTrained | undefined;
  private abandoned = false;
  private batchAt = 0;
  private trainedAt = 0;
  private highestVersion = 0;
  private changedAt = 0;
  /** By number: where each batch stands in the log. */
  private readonly sequences = new Map<number, number>();
  /** Of the newest batches that made a version or may yet, oldest first; more than are asked for, since some are taken out again. */
  private recentBatches: { readonly number: number; readonly samples: readonly BatchSample[] }[] = [];
  /** By number of a batch that takes the samples of another once more: the batch whose samples they were first. */
  private readonly originals = new Map<number, number>();
  private readonly repeated = new Set<number>();
  private withoutParent: readonly BatchClosed[] = [];
  /** Facts that gave up a batch for its step since the newest version was made. */
  private givenUp: readonly BatchClosed[] = [];

  constructor(private readonly policy: string) {}

  closed(batch: BatchClosed, sequence: number): void {
    if (sequence <= this.batchAt) return;
    this.lastBatch = batch;
    this.batchAt = sequence;
    this.sequences.set(batch.number, sequence);
    if (batch.why === 'lessons') this.changedAt = batch.number;
    this.givenUp = givenUpInARow([...this.givenUp, batch], 0);
    if (batch.repeats > 0) {
      // The one in between may be gone, with a person who was forgotten.
      this.repeated.add(batch.repeats).add(batch.first);
      this.originals.set(batch.number, batch.first);
    }
    if (takesAStep(batch)) {
      const ofTurns = batch.samples.filter(isOfTurn);
      const entry = { number: batch.number, samples: ofTurns };
      if (ofTurns.length > 0) this.recentBatches = [...this.recentBatches, entry].slice(-versionsKept);
      this.lastTraining = batch;
      this.abandoned = false;
      this.nameIsUsed(batch.version);
    } else if (givenUpBy.has(batch.why)) {
      if (!this.abandoned && this.lastTraining !== undefined && batch.why === 'burned_parent')
        this.withoutParent = [...this.withoutParent, this.lastTraining];
      this.recentBatches = this.recentBatches.filter(({ number }) => number !== this.lastTraining?.number);
      this.abandoned = true;
    }
  }

  trained(fact: WeightsTrained, sequence: number): void {
    if (sequence <= this.trainedAt) return;
    this.trainedAt = sequence;
    this.lastReport = fact;
    // Its batch may be gone, with a person who was forgotten.
    this.nameIsUsed(fact.version);
    this.givenUp = this.givenUp.filter(({ number }) => number > fact.batch);
  }

  /** The fact of a trained version that cannot be read: where no later one is there, its step is taken again, to the same version. */
  lost(sequence: number): void {
    this.trainedAt = Math.max(this.trainedAt, sequence);
  }

  private nameIsUsed(version: string): void {
    this.highestVersion = Math.max(this.highestVersion, versionNumber(this.policy, version) ?? 0);
  }

  /** Closed, not trained, not given up: the step that must be taken before anything else. */
  open(): BatchClosed | undefined {
    if (this.lastTraining === undefined || this.abandoned || this.isTrained(this.lastTraining)) return undefined;
    return this.lastTraining;
  }

  /**
   * The report of the newest step, where no fact was closed after it: what the next fact has to take in. Later facts have taken it in already.
   * Facts that were closed while the step was still to be taken have not.
   */
  unreadReport(): { batch: BatchClosed; trained: WeightsTrained } | undefined {
    const { lastTraining: batch, lastReport: trained } = this;
    if (batch === undefined || trained === undefined || this.trainedAt < this.batchAt) return undefined;
    return this.isTrained(batch) ? { batch, trained } : undefined;
  }

  private isTrained(batch: BatchClosed): boolean {
    return takesAStep(batch) && this.lastReport !== undefined && this.lastReport.batch >= batch.number;
  }

  /** Numbers of the facts that gave up a batch for its step, where they were so many in a row that training rests; otherwise none. */
  heldFor(resumedAfterBatch: number): readonly number[] {
    const row = givenUpInARow(this.givenUp, resumedAfterBatch);
    return isHeld(row) ? row.map(({ number }) => number) : [];
  }

  /** No version ever comes of the newest batch that was to be trained, and its samples were new. */
  isGivenUp(): boolean {
    return this.abandoned && !this.isRepeating();
  }

  /** The newest batch that was to be trained repeats another. */
  isRepeating(): boolean {
    return (this.lastTraining?.repeats ?? 0) > 0;
  }

  /** Whether a later batch takes its samples once more, or says that nothing is left of them. */
  isRepeated(batch: number): boolean {
    return this.repeated.has(batch);
  }

  /** It takes the samples of another batch once more. */
  repeatsAnother(batch: number): boolean {
    return this.originals.has(batch);
  }

  /** The batch whose samples they were first; itself, where they were new. */
  originalOf(batch: number): number {
    return this.originals.get(batch) ?? batch;
  }

  /** Batches that were given up because the version that they were to start from was burned. */
  lostTheirParent(): readonly BatchClosed[] {
    return this.withoutParent;
  }

  sequenceOf(batch: number): number | undefined {
    return this.sequences.get(batch);
  }

  /** The samples of the newest versions, version by version. What is repeated counts once. */
  recent(): readonly (readonly BatchSample[])[] {
    const standing = this.recentBatches.filter(({ number }) => !this.isRepeated(number));
    return standing.slice(-versionsInWindow).map(({ samples }) => samples);
  }

  last(): BatchClosed | undefined {
    return this.lastBatch;
  }

  /** Number of the newest batch that took in what was said of lessons. */
  lessonsChangedAt(): number {
    return this.changedAt;
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
/** What workers, engines, the broker and a store that is full or lags say of themselves: it costs a batch no try. */
const ofOthers = new Set([
  'blob_cache_failed',
  'blob_missing',
  'blob_store_absent',
  'blob_store_failed',
  'blob_store_full',
  'blob_store_refused',
  'broker_unavailable',
  'stream_full',
  'training_busy',
  'model_unsupported',
  'renderer_away',
  'payload_late',
  'service_unavailable',
  'recipe_not_honoured',
  'parent_elsewhere',
]);
/** A batch that ends the worker, or this process, each time must not hold up learning. */
export const stepTriesMax = 10;

export function failsAgain(code: string): boolean {
  return inTheData.has(code);
}

export function costsATry(code: string): boolean {
  return !ofOthers.has(code);
}
