// The training workers, which all policies share: each takes one step at a time, and who asked first is served first. A worker that takes that
// very step already, for a trainer of before, is preferred; then the one that has the policy's files, then the one that has rested longest, and last
// the one on which the policy's last step failed.
// In: whose step. Out: a worker that is there, free and held until it is given back; an error where none is there at all.
import { asBacktalkError, type Clock } from '@backtalk/kit';

import type { TrainerEvents } from '../events.js';
import type { TrainingWorker, WorkerBase } from '../outputs/training-worker.js';
import { WakeSignal } from './wake-signal.js';

export interface HeldWorker {
  readonly worker: Pick<TrainingWorker, 'train'>;
  readonly base: WorkerBase;
  /** @param outcome after a step that failed, another worker is asked first */
  readonly release: (outcome?: 'well' | 'failed') => void;
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
  private asking = 0;
  private readonly lastOf = new Map<string, TrainingWorker>();
  private readonly failedOn = new Map<string, TrainingWorker>();
  /** Ends when the policy that asked last has its worker, or none. */
  private choosing: Promise<void> = Promise.resolve();
  private readonly released = new WakeSignal();

  constructor(
    private readonly workers: readonly TrainingWorker[],
    private readonly clock: Clock,
    private readonly events: Pick<TrainerEvents, 'workerSeen'>,
  ) {
    this.free = workers;
  }

  close(): void {
    for (const worker of this.workers) worker.close();
  }

  /** @param onWait it has to wait */
  async hold(wanted: WantedStep, signal: AbortSignal, onWait: () => void = () => undefined): Promise<HeldWorker> {
    const before = this.choosing;
    let chosen: () => void = () => undefined;
    this.choosing = new Promise((resolve) => (chosen = resolve));
    if (this.asking > 0 || this.free.length === 0) onWait();
    this.asking += 1;
    try {
      await unlessAborted(before, signal);
      for (;;) {
        const held = await this.choose(wanted, signal);
        if (held !== undefined) return held;
        onWait();
        await this.released.wait(lookAgainMs, this.clock, signal);
      }
    } finally {
      this.asking -= 1;
      // Also where it gave up: those behind it still wait for those before it.
      void before.then(chosen);
    }
  }

  /** For what is in no hurry: undefined where no worker is free, or a policy waits for one. */
  async tryHold(wanted: WantedStep, signal: AbortSignal): Promise<HeldWorker | undefined> {
    if (this.asking > 0 || this.free.length === 0) return undefined;
    const before = this.choosing;
    let chosen: () => void = () => undefined;
    this.choosing = new Promise((resolve) => (chosen = resolve));
    await before;
    try {
      return await this.choose(wanted, signal);
    } finally {
      chosen();
    }
  }

  /** Undefined where none that is free is there, but others are at work: what waits for them keeps its place. */
  private async choose(wanted: WantedStep, signal: AbortSignal): Promise<HeldWorker | undefined> {
    signal.throwIfAborted();
    const [last, failed] = [this.lastOf.get(wanted.policy), this.failedOn.get(wanted.policy)];
    const rank = (worker: TrainingWorker) => (worker === failed ? 2 : worker === last ? 0 : 1);
    const asked = this.free.toSorted((a, b) => rank(a) - rank(b));
    const looked = await Promise.allSettled(
      asked.map(async (worker) => ({ worker, ...(await worker.look(wanted.call, signal)) })),
    );
    for (const [at, one] of looked.entries()) this.say(asked[at], one);
    const there = looked.flatMap((one) => (one.status === 'fulfilled' ? [one.value] : []));
    const best = there.find(({ takesIt, worker }) => takesIt && worker !== failed) ?? there[0];
    if (best !== undefined) return this.take(best.worker, best.base, wanted.policy);
    const [away] = looked.filter((one) => one.status === 'rejected');
    if (this.held === 0 && away !== undefined) throw away.reason;
    return undefined;
  }

  private say(worker: TrainingWorker | undefined, looked: PromiseSettledResult<unknown>): void {
    if (worker === undefined) return;
    const code = looked.status === 'fulfilled' ? '' : asBacktalkError(looked.reason).code;
    this.events.workerSeen(worker.address, code);
  }

  private take(worker: TrainingWorker, base: WorkerBase, policy: string): HeldWorker {
    this.free = this.free.filter((other) => other !== worker);
    this.held += 1;
    this.lastOf.set(policy, worker);
    let isHeld = true;
    const release = (outcome: 'well' | 'failed' = 'well') => {
      if (!isHeld) return;
      isHeld = false;
      if (outcome === 'failed') this.failedOn.set(policy, worker);
      else this.failedOn.delete(policy);
      this.held -= 1;
      this.free = [...this.free, worker];
      this.released.notify();
    };
    return { worker, base, release };
  }
}

/** Rejects as soon as the signal aborts, whatever it waits for. */
async function unlessAborted(waited: Promise<void>, signal: AbortSignal): Promise<void> {
  signal.throwIfAborted();
  let onAbort: () => void = () => undefined;
  const aborted = new Promise<never>((_, reject) => {
    onAbort = () => {
      reject(asBacktalkError(signal.reason));
    };
    signal.addEventListener('abort', onAbort, { once: true });
  });
  await Promise.race([waited, aborted]).finally(() => {
    signal.removeEventListener('abort', onAbort);
  });
}
