// Where the training of a policy stands, for whoever looks: key `<policy>.training` of bucket `settings`.
// In: the step's progress. Out: the newest state, at most a few times a second. A board that cannot be written delays nothing.
import {
  asBacktalkError,
  kvBucket,
  type BacktalkError,
  type Broker,
  type Clock,
  type KvBucket,
  type KvCodec,
} from '@backtalk/kit';
import type { BatchClosed } from '@backtalk/proto/facts';
import type { TrainProgress } from '@backtalk/proto/training';

export interface TrainingProgress {
  readonly batch: number;
  readonly version: string;
  readonly parent: string;
  /** A phase of the training worker; or "starting", "done", "waiting" (a step could not be taken and is tried again), "given_up". */
  readonly phase: string;
  readonly microBatch: number;
  readonly microBatches: number;
  readonly loss: number;
  readonly samples: number;
  readonly startedAtMs: number;
  readonly updatedAtMs: number;
}

const boardEveryMs = 500;

const codec: KvCodec<TrainingProgress> = {
  toJSON: (value) => value,
  // The trainer never reads its own board.
  fromJSON: () => blank,
};

const blank: TrainingProgress = {
  batch: 0,
  version: '',
  parent: '',
  phase: '',
  microBatch: 0,
  microBatches: 0,
  loss: 0,
  samples: 0,
  startedAtMs: 0,
  updatedAtMs: 0,
};

export class ProgressBoard {
  private readonly bucket: KvBucket<TrainingProgress>;
  private shown = blank;
  private writing = false;
  private next: TrainingProgress | undefined;

  constructor(
    broker: Broker,
    private readonly policy: string,
    private readonly clock: Clock,
    private readonly onFailure: (error: BacktalkError) => void,
  ) {
    this.bucket = kvBucket(broker, 'settings', codec);
  }

  started({ number, version, parent }: BatchClosed, samples: number): void {
    const now = this.clock.now();
    this.show({
      ...blank,
      batch: number,
      version,
      parent,
      phase: 'starting',
      samples,
      startedAtMs: now,
      updatedAtMs: now,
    });
  }

  moved({ phase, microBatch, microBatches, loss }: TrainProgress): void {
    const now = this.clock.now();
    if (phase === this.shown.phase && now - this.shown.updatedAtMs < boardEveryMs) return;
    this.show({ ...this.shown, phase, microBatch, microBatches, loss, updatedAtMs: now });
  }

  ended(phase: 'done' | 'waiting' | 'given_up'): void {
    this.show({ ...this.shown, phase, updatedAtMs: this.clock.now() });
  }

  /** One write at a time; what comes meanwhile replaces what waits. */
  private show(progress: TrainingProgress): void {
    this.shown = progress;
    this.next = progress;
    if (this.writing) return;
    this.writing = true;
    this.write().catch((error: unknown) => {
      this.onFailure(asBacktalkError(error));
    });
  }

  private async write(): Promise<void> {
    try {
      while (this.next !== undefined) {
        const progress = this.next;
        this.next = undefined;
        await this.bucket.put(`${this.policy}.training`, progress);
      }
    } finally {
      this.writing = false;
    }
  }
}
