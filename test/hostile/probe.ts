// The other client, seen from the attacker's process: what it noted, and whether it has been answered often enough.
import { fork, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import type { Noted } from './probe-main.js';

/** Answers that a percentile stands on. */
export const answersMin = 200;
/** A client that is answered so slowly that this passes first has been measured, too. */
const measuredWithinMs = 45_000;
const replyWithinMs = 10_000;

export class Probe {
  private readonly child: ChildProcess;
  private isMeasured = false;

  constructor(gateway: string, key: string) {
    const program = fileURLToPath(new URL('probe-main.js', import.meta.url));
    this.child = fork(program, [gateway, key, String(answersMin)]);
    this.child.on('message', () => (this.isMeasured = true));
  }

  get pid(): number {
    return this.child.pid ?? 0;
  }

  /** What it noted since the last time; it begins anew. */
  async noted(): Promise<Noted> {
    this.child.send('noted');
    for (;;) {
      const [message] = (await once(this.child, 'message', { signal: AbortSignal.timeout(replyWithinMs) })) as [
        unknown,
      ];
      this.isMeasured = false;
      if (message !== 'enough') return message as Noted;
    }
  }

  /** Resolves when it has been answered often enough since `noted`. */
  async measured(): Promise<void> {
    if (this.isMeasured) return;
    await once(this.child, 'message', { signal: AbortSignal.timeout(measuredWithinMs) }).catch(() => undefined);
  }

  /** Once, and again until it has been measured. */
  async rounds<T>(round: () => Promise<T>): Promise<T[]> {
    const until = performance.now() + measuredWithinMs;
    const all = [await round()];
    while (!this.isMeasured && performance.now() < until) all.push(await round());
    return all;
  }

  stop(): void {
    this.child.kill('SIGKILL');
  }
}
