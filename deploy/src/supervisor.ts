// Brings the machine up in order, keeps it up, and takes it down in reverse within ten seconds.
// Takes process specs; owns their lives and nothing of what they do.
import { join } from 'node:path';
import { Child, type ProcessSpec } from './child.js';
import type { ProcessRecord } from './process-record.js';
import type { Terminal } from './terminal.js';

const stopWaveWithinMs = 4_000;
const stopAllWithinMs = 9_000;

export class Supervisor {
  private readonly waves: Child[][] = [];
  private stopped = false;

  constructor(
    private readonly logFolder: string,
    private readonly terminal: Terminal,
    private readonly record: ProcessRecord,
  ) {}

  private get children(): Child[] {
    return this.waves.flat();
  }

  private child(spec: ProcessSpec): Child {
    const logFile = join(this.logFolder, `${spec.name}.log`);
    return new Child(spec, logFile, {
      started: (name, pid) => {
        this.record.started(name, pid);
      },
      ill: (name, forMs) => {
        this.terminal.warn(
          `${name} has not served for ${String(forMs / 1_000)} s though it lives: it is started again`,
        );
      },
      died: (name, how, againInMs) => {
        this.terminal.warn(`${name} ${how}; starting it again in ${String(againInMs / 1000)} s (log: ${logFile})`);
      },
      back: (name) => {
        this.terminal.step(`${name} is back`);
      },
      slow: (name, lastWords) => {
        this.terminal.warn(`${name} does not serve yet (log: ${logFile})${lastWords === '' ? '' : `: ${lastWords}`}`);
      },
    });
  }

  /** Starts all waves at once and waits until every process serves; the last wave is the first to stop. None after `stop`. */
  async start(...waves: readonly (readonly ProcessSpec[])[]): Promise<void> {
    // While this was prepared, the machine may have been asked to stop.
    if (this.stopped) return;
    const started = waves.map((specs) => specs.map((spec) => this.child(spec)));
    this.waves.push(...started);
    const serving = started.flat().map(async (child) => {
      const startedAt = performance.now();
      if (!(await child.start())) return;
      this.terminal.step(`${child.spec.name} serves (${((performance.now() - startedAt) / 1000).toFixed(1)} s)`);
    });
    await Promise.all(serving);
  }

  /** The process id of a running process by its name. */
  pid(name: string): number | undefined {
    return this.children.find(({ spec }) => spec.name === name)?.pid;
  }

  /** Asks the named process whether it serves. */
  async serves(name: string): Promise<boolean> {
    const child = this.children.find(({ spec }) => spec.name === name);
    return child?.pid !== undefined && (await child.spec.ready());
  }

  /** Wave by wave, in reverse; whatever is left after the deadline is killed. */
  async stop(): Promise<void> {
    this.stopped = true;
    const last = setTimeout(() => {
      this.killAll();
    }, stopAllWithinMs);
    for (const wave of [...this.waves].reverse()) await Promise.all(wave.map((child) => child.stop(stopWaveWithinMs)));
    clearTimeout(last);
    this.record.close();
  }

  killAll(): void {
    for (const child of this.children) child.killNow();
  }
}
