// The training workers, which all policies share: each takes one step at a time, and who asked first is served first. A worker that takes that
// very step already, for a trainer of before, is preferred; then the one that has the policy's files, then the one that has rested longest.
// In: whose step. Out: a worker that is there, free and held until it is given back; an error where none is there at all.
import { type Clock } from '@backtalk/kit';

import type { TrainingWorker, WorkerBase } from '../outputs/training-worker.js';
import { WakeSignal } from './wake-signal.js';

export interface HeldWorker {
  readonly worker: Pick<TrainingWorker, 'train'>;
  readonly base: WorkerBase;
  readonly release: () => void;
}

export interface WantedStep {
  readonly policy: string;
  /** The worker knows a step by it. */
  readonly call: string;
}

/** One that was away may be back while the others are at work. */
const lookAgainMs = 5_000;

export class WorkerPool {
  /** That has rested longest first. */
  private free: readonly TrainingWorker[];
  private held = 0;
  private readonly lastOf = new Map<string, TrainingWorker>();
  /** Ends when the policy that asked last has its worker, or none. */
  private choosing: Promise<void> = Promise.resolve();
  private readonly released = new WakeSignal();

  constructor(
    private readonly workers: readonly TrainingWorker[],
    private readonly clock: Clock,
  ) {
    this.free = workers;
  }

  close(): void {
    for (const worker of this.workers) worker.close();
  }

  /** @param onWait all that are there are at work */
  async hold(wanted: WantedStep, signal: AbortSignal, onWait: () => void = () => undefined): Promise<HeldWorker> {
    const before = this.choosing;
    let chosen: () => void = () => undefined;
    this.choosing = new Promise((resolve) => (chosen = resolve));
    if (this.held === this.workers.length) onWait();
    await before;
    try {
      return await this.choose(wanted, signal, onWait);
    } finally {
      chosen();
    }
  }

  private async choose(wanted: WantedStep, signal: AbortSignal, onWait: () => void): Promise<HeldWorker> {
    for (;;) {
      signal.throwIfAborted();
      const last = this.lastOf.get(wanted.policy);
      const asked = this.free.toSorted((a, b) => Number(b === last) - Number(a === last));
      const looked = await Promise.allSettled(
        asked.map(async (worker) => ({ worker, ...(await worker.look(wanted.call, signal)) })),
      );
      const there = looked.flatMap((one) => (one.status === 'fulfilled' ? [one.value] : []));
      const best = there.find(({ takesIt }) => takesIt) ?? there[0];
      if (best !== undefined) return this.take(best.worker, best.base, wanted.policy);
      const failed = looked.find((one) => one.status === 'rejected');
      // With others at work, this one waits for them in its place.
      if (this.held === 0 && failed !== undefined) throw failed.reason;
      onWait();
      await this.released.wait(lookAgainMs, this.clock, signal);
    }
  }

  private take(worker: TrainingWorker, base: WorkerBase, policy: string): HeldWorker {
    this.free = this.free.filter((other) => other !== worker);
    this.held += 1;
    this.lastOf.set(policy, worker);
    let isHeld = true;
    const release = () => {
      if (!isHeld) return;
      isHeld = false;
      this.held -= 1;
      this.free = [...this.free, worker];
      this.released.notify();
    };
    return { worker, base, release };
  }
}
