// Have engines ended while they had this prompt?
//
// In: prompts, as any JSON value, and the news that an engine was gone after it had been sent them, or that it answered
// them. Out: whether an engine may be asked again. One death may be chance, and all who waited at that engine are innocent
// but one: another engine is asked. The second ends it for a while, however often the client sends the same again; an
// answer in between clears it. Pure: time is an argument.
import { hash } from 'node:crypto';
import { isEngineError } from './errors.js';

interface Deaths {
  readonly count: number;
  readonly engine: string;
  readonly atMs: number;
}

export const deathsMax = 2;
/** How long a death is remembered. */
export const deathKeptMs = 10 * 60_000;
const promptsMax = 1_000;
/** Equal prompts that one engine had when it ended are one death; no engine ends, starts and ends again within this. */
export const sameDeathMs = 30_000;

/** Whether the engine's connection was lost while it had the prompt. */
export function isLostEngine(error: unknown): boolean {
  return isEngineError(error, 'engine_connection_lost', 'engine_stream_broken');
}

export class DeadlyPrompts {
  private readonly known = new Map<string, Deaths>();

  /** Milliseconds for which no engine is asked; 0 where one may be. Costs nothing while no engine has died. */
  restMs(prompt: unknown, nowMs: number): number {
    if (this.known.size === 0) return 0;
    const deaths = this.known.get(digestOf(prompt));
    return deaths === undefined || deaths.count < deathsMax ? 0 : Math.max(0, deaths.atMs + deathKeptMs - nowMs);
  }

  /** Out: true when it was one death too many. */
  died(prompt: unknown, engine: string, nowMs: number): boolean {
    for (const [digest, { atMs }] of this.known) if (atMs + deathKeptMs <= nowMs) this.known.delete(digest);
    const digest = digestOf(prompt);
    const before = this.known.get(digest);
    if (before?.engine === engine && nowMs - before.atMs < sameDeathMs) return false;
    const count = (before?.count ?? 0) + 1;
    this.known.delete(digest);
    this.known.set(digest, { count, engine, atMs: nowMs });
    const [oldest] = this.known.keys();
    if (this.known.size > promptsMax && oldest !== undefined) this.known.delete(oldest);
    return count === deathsMax;
  }

  answered(prompt: unknown): void {
    if (this.known.size > 0) this.known.delete(digestOf(prompt));
  }
}

function digestOf(prompt: unknown): string {
  return hash('sha256', JSON.stringify(prompt), 'hex');
}
