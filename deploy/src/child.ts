// One process of the machine: starts it, writes its output to its log file, says when it is ready, and starts it again
// with back-off when it dies unasked. It never decides what runs: `processes.ts` does.
import { spawn, type ChildProcess } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { deployErrors } from './errors.js';
import { killGroup } from './process-record.js';
import { ProcessLog } from './process-log.js';

const backOffMs = [500, 1_000, 2_000, 5_000, 10_000, 30_000];
const steadyAfterMs = 60_000;
const endsWithinDefaultMs = 10_000;
const slowAfterDefaultMs = 15_000;
const lineCharactersMax = 300;

export interface ProcessSpec {
  readonly name: string;
  readonly command: string;
  readonly args: readonly string[];
  readonly env: Readonly<Record<string, string>>;
  /** Resolves true once the process serves. Asked again and again until `readyWithinMs` is over. */
  readonly ready: () => Promise<boolean>;
  readonly readyWithinMs: number;
  /** It is told, once, that a process is slow to serve; 15 s when left out. */
  readonly slowAfterMs?: number;
  readonly stopSignal: 'SIGTERM' | 'SIGINT';
  /** For a process that may live on without serving: once it served, it is started anew when it is ill for too long. */
  readonly watch?: ProcessWatch;
}

export interface ProcessWatch {
  readonly isWell: () => Promise<boolean>;
  readonly everyMs: number;
  readonly illMaxMs: number;
  /** What an ill process has for an orderly end before it is killed; 10 s when left out. */
  readonly endsWithinMs?: number;
}

export interface ChildEvents {
  started(name: string, pid: number): void;
  died(name: string, how: string, againInMs: number): void;
  back(name: string): void;
  ill(name: string, forMs: number): void;
  /** @param lastWords of its log; empty where it has said nothing */
  slow(name: string, lastWords: string): void;
}

export class Child {
  private process: ChildProcess | undefined;
  private stopping = false;
  private deaths = 0;
  private startedAt = 0;
  /** When it was last well, on the monotonic clock in ms; undefined until it serves. */
  private wellAt: number | undefined;
  private restart: NodeJS.Timeout | undefined;
  private exited: Promise<void> = Promise.resolve();

  constructor(
    readonly spec: ProcessSpec,
    private readonly logPath: string,
    private readonly events: ChildEvents,
  ) {}

  get pid(): number | undefined {
    return this.process?.pid;
  }

  /**
   * Starts and waits until it serves; a process that dies before it served is a refusal with its last words.
   * @returns false where it was stopped before it served
   */
  async start(): Promise<boolean> {
    this.launch(false);
    const { name, readyWithinMs, slowAfterMs = slowAfterDefaultMs } = this.spec;
    const deadline = performance.now() + readyWithinMs;
    const slow = setTimeout(() => this.events.slow(name, lastLineOf(this.logPath)), slowAfterMs);
    return this.untilReady(deadline).finally(() => clearTimeout(slow));
  }

  private async untilReady(deadline: number): Promise<boolean> {
    while (performance.now() < deadline) {
      if (await this.isReady()) return true;
      if (this.stopping) return false;
      if (this.deaths > 2)
        throw deployErrors.endsAtOnce({ name: this.spec.name, log: this.logPath, lastWords: lastLineOf(this.logPath) });
      await new Promise((resolve) => setTimeout(resolve, 100));
    }
    throw deployErrors.notReady({ name: this.spec.name, log: this.logPath, seconds: this.spec.readyWithinMs / 1000 });
  }

  /** That it serves is its first sign of being well: it may hang before the first look at it. */
  private async isReady(): Promise<boolean> {
    const askedAt = performance.now();
    const ready = await this.spec.ready();
    if (ready) this.wellAt = askedAt;
    return ready;
  }

  private launch(again: boolean): void {
    this.startedAt = performance.now();
    this.wellAt = undefined;
    const child = spawn(this.spec.command, [...this.spec.args], {
      env: { ...this.spec.env },
      stdio: ['ignore', 'pipe', 'pipe'],
      detached: true,
    });
    this.process = child;
    if (child.pid !== undefined) this.events.started(this.spec.name, child.pid);
    const log = new ProcessLog(this.logPath, [child.stdout, child.stderr]);
    this.watchOver(child);
    this.exited = new Promise((resolve) => {
      child.once('error', (error) => {
        log.write(String(error));
        resolve();
        this.onDeath(`cannot be started (${error.message})`);
      });
      // Its last words may still be on their way when it exits.
      child.once('close', () => {
        log.end();
      });
      child.once('exit', (code, signal) => {
        resolve();
        this.onDeath(signal === null ? `ended with status ${String(code)}` : `was killed by ${signal}`);
      });
    });
    if (again) void this.announceReturn();
  }

  private watchOver(child: ChildProcess): void {
    const { watch, name } = this.spec;
    if (watch === undefined) return;
    const { isWell, everyMs, illMaxMs, endsWithinMs = endsWithinDefaultMs } = watch;
    let isLooking = false;
    const look = async () => {
      // A look that hangs takes longer than the time between two.
      if (isLooking) return;
      isLooking = true;
      const askedAt = performance.now();
      const well = await isWell();
      if (this.process !== child) return;
      if (well) this.wellAt = askedAt;
      else if (this.wellAt !== undefined && askedAt - this.wellAt > illMaxMs) {
        clearInterval(timer);
        this.events.ill(name, illMaxMs);
        child.kill(this.spec.stopSignal);
        const killer = setTimeout(() => killGroup(child.pid ?? 0), endsWithinMs);
        child.once('exit', () => clearTimeout(killer));
        return;
      }
      isLooking = false;
    };
    const timer = setInterval(() => {
      // A look that fails says nothing; the next one tries again.
      look().catch(() => (isLooking = false));
    }, everyMs);
    child.once('close', () => clearInterval(timer));
  }

  private async announceReturn(): Promise<void> {
    const deadline = performance.now() + this.spec.readyWithinMs;
    const process = this.process;
    while (performance.now() < deadline && this.process === process && !this.stopping) {
      if (await this.isReady()) {
        this.events.back(this.spec.name);
        return;
      }
      await new Promise((resolve) => setTimeout(resolve, 200));
    }
  }

  private onDeath(how: string): void {
    this.process = undefined;
    if (this.stopping) return;
    if (performance.now() - this.startedAt > steadyAfterMs) this.deaths = 0;
    const wait = backOffMs[Math.min(this.deaths, backOffMs.length - 1)] ?? 30_000;
    this.deaths += 1;
    this.events.died(this.spec.name, how, wait);
    this.restart = setTimeout(() => {
      this.launch(true);
    }, wait);
  }

  /** Asks it to stop, and kills it (with what it started) when `withinMs` has passed. */
  async stop(withinMs: number): Promise<void> {
    this.stopping = true;
    clearTimeout(this.restart);
    const child = this.process;
    if (child?.pid === undefined) return;
    const { pid } = child;
    child.kill(this.spec.stopSignal);
    const killer = setTimeout(() => {
      killGroup(pid);
    }, withinMs);
    await this.exited;
    clearTimeout(killer);
  }

  /** Last resort, without waiting. */
  killNow(): void {
    this.stopping = true;
    clearTimeout(this.restart);
    if (this.process?.pid !== undefined) killGroup(this.process.pid);
  }
}

/** Services say in their last line what is wrong with a setting. */
function lastLineOf(path: string): string {
  try {
    const lines = readFileSync(path, 'utf8').split('\n');
    return (lines.findLast((line) => line.trim() !== '') ?? '').trim().slice(0, lineCharactersMax);
  } catch {
    return '';
  }
}
