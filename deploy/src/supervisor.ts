// Brings the machine up in order, keeps it up, and takes it down in reverse within ten seconds.
// Takes process specs; owns their lives and nothing of what they do.

import { join } from 'node:path';
import { Child, type ProcessSpec } from './child.js';
import type { Terminal } from './terminal.js';

const stopEachWithinMs = 4_000;
const stopAllWithinMs = 9_000;

export class Supervisor {
  private readonly children: Child[] = [];

  constructor(
    private readonly logFolder: string,
    private readonly terminal: Terminal,
  ) {}

  private child(spec: ProcessSpec): Child {
    const logFile = join(this.logFolder, `${spec.name}.log`);
    const child = new Child(spec, logFile, {
      died: (name, how, againInMs) => {
        this.terminal.warn(`${name} ${how}; starting it again in ${String(againInMs / 1000)} s (log: ${logFile})`);
      },
      back: (name) => {
        this.terminal.step(`${name} is back`);
      },
    });
    this.children.push(child);
    return child;
  }

  /** Starts one after the other, each when the one before it serves. */
  async startInOrder(specs: readonly ProcessSpec[]): Promise<void> {
    for (const spec of specs) await this.startOne(spec);
  }

  /** Starts all at once and waits until every one serves. */
  async startTogether(specs: readonly ProcessSpec[]): Promise<void> {
    await Promise.all(specs.map((spec) => this.startOne(spec)));
  }

  private async startOne(spec: ProcessSpec): Promise<void> {
    const startedAt = performance.now();
    await this.child(spec).start();
    this.terminal.step(`${spec.name} serves (${((performance.now() - startedAt) / 1000).toFixed(1)} s)`);
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

  /** Reverse order; whatever is left after the deadline is killed. */
  async stop(): Promise<void> {
    const last = setTimeout(() => {
      this.killAll();
    }, stopAllWithinMs);
    for (const child of [...this.children].reverse()) await child.stop(stopEachWithinMs);
    clearTimeout(last);
  }

  killAll(): void {
    for (const child of this.children) child.killNow();
  }
}
