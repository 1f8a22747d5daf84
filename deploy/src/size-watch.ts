// Measures the data folder every minute: says in good time that its cap comes near, has learning rest when the cap is
// reached, and has it go on when there is room again. Chat goes on in any case.
import { asBacktalkError, cappedBytes } from '@backtalk/kit';
import type { Terminal } from './terminal.js';

const defaultEveryMs = 60_000;
const warnShare = 0.8;
/** A little below the cap, so that learning does not stop and go at its edge. */
const roomShare = 0.95;

export interface SizeWatchOptions {
  readonly path: string;
  readonly capBytes: number;
  readonly terminal: Terminal;
  /** Tells the trainer whether the folder is full. Where it fails, the next look tries again. */
  readonly report: (full: boolean) => Promise<void>;
  readonly everyMs?: number;
}

export class SizeWatch {
  private timer: NodeJS.Timeout | undefined;
  private running: Promise<void> = Promise.resolve();
  private stopped = false;
  private full = false;
  private near = false;
  /** What the trainer knows; nothing before the first look. */
  private reported: boolean | undefined;

  constructor(private readonly options: SizeWatchOptions) {}

  start(): void {
    this.running = this.look()
      .catch((error: unknown) => {
        this.options.terminal.warn(`${this.options.path} could not be measured: ${asBacktalkError(error).message}`);
      })
      .finally(() => {
        if (!this.stopped) this.timer = setTimeout(() => this.start(), this.options.everyMs ?? defaultEveryMs);
      });
  }

  async stop(): Promise<void> {
    this.stopped = true;
    clearTimeout(this.timer);
    await this.running;
  }

  private async look(): Promise<void> {
    const { path, capBytes, terminal } = this.options;
    const share = cappedBytes(path) / capBytes;
    const cap = `${(capBytes / 1e9).toFixed(1)} GB`;
    const wasFull = this.full;
    this.full = share >= (wasFull ? roomShare : 1);
    if (this.full && !wasFull) {
      terminal.warn(
        `${path} has reached its cap of ${cap}: learning rests until there is room, chat goes on (npx backtalk turns trim, --data-cap, npm run reset)`,
      );
    }
    if (wasFull && !this.full) terminal.step(`${path} has room again: learning goes on`);
    const isNear = share >= warnShare;
    if (isNear && !this.near && !this.full)
      terminal.warn(`${path} holds ${(share * 100).toFixed(0)} % of its cap of ${cap}`);
    this.near = isNear;
    if (this.reported === this.full) return;
    try {
      await this.options.report(this.full);
      this.reported = this.full;
    } catch (error) {
      terminal.warn(`The trainer does not know of the room on disk: ${asBacktalkError(error).message}`);
    }
  }
}
