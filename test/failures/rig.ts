// What every test of a failure does: a machine of stand-ins, a seeded crowd before, during and after the fault, and an
// audit of the whole machine's life at the end. The seed is printed; BACKTALK_TEST_SEED plays a run again.
import { until } from '@backtalk/kit/testing';
import { audited } from '../loop/audited.js';
import { startCrowd, type Crowd } from '../loop/crowd.js';
import { LogBook } from '../loop/fact-log.js';
import type { LedgerRow } from '../loop/ledger.js';
import { startTestMachine, type TestMachine, type TestMachineOptions } from '../loop/machine.js';
import { printedSeed } from '../loop/seed.js';

export interface Fault {
  readonly crowd: Crowd;
  readonly rig: FailureRig;
}

export class FailureRig {
  /** All that clients saw since the machine started. */
  readonly ledger: LedgerRow[] = [];
  private crowds = 0;

  private constructor(
    readonly machine: TestMachine,
    readonly book: LogBook,
    private readonly seed: number,
    private readonly key: { readonly key?: string },
  ) {}

  static async start(options: Partial<TestMachineOptions> = {}): Promise<FailureRig> {
    const seed = printedSeed();
    const machine = await startTestMachine({
      engine: 'stand-in',
      training: 'stand-in',
      pace: { tokenMs: 30, answerTokens: 20 },
      environment: { trainer: { BACKTALK_RECIPE_SET: 'effective=4,effectiveMin=4' } },
      ...options,
    });
    const [key] = options.keys ?? [];
    return new FailureRig(machine, await LogBook.open(machine), seed, key === undefined ? {} : { key: key.key });
  }

  async stop(): Promise<void> {
    await this.book.close();
    await this.machine.stop();
  }

  /** Runs a fault while clients talk, and lets them go on a while after it. */
  async during(
    fault: (fault: Fault) => Promise<void>,
    { clients = 6, before = 10, after = 15, streams = 0.8 } = {},
  ): Promise<LedgerRow[]> {
    this.crowds += 1;
    const { gateway } = this.machine;
    const crowd = startCrowd({ gateway, seed: this.seed + this.crowds, clients, streams, optsOut: 0.1, ...this.key });
    try {
      await this.untilFinished(crowd, before);
      await fault({ crowd, rig: this });
      await this.untilFinished(crowd, crowd.finished + after);
    } finally {
      this.ledger.push(...(await crowd.stop()));
    }
    return [...crowd.ledger];
  }

  /** Kills a process with SIGKILL and waits until another one serves in its place. */
  async killed(name: string): Promise<void> {
    const before = this.machine.pid(name);
    this.machine.kill(name);
    await this.machine.serves(name, before);
  }

  async problems(): Promise<string[]> {
    return audited(this.book, this.ledger);
  }

  private async untilFinished(crowd: Crowd, count: number): Promise<void> {
    const talks = () => crowd.finished >= count && crowd.talking > 0;
    await until(talks, { what: `${String(count)} answers`, timeoutMs: 60_000 });
  }
}
