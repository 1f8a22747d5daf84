// Turns that some batch has taken or settled: one sample per turn id, ever. It remembers the batches that may still have messages above
// the ack floor; anything older is known by the floor itself.
import type { BatchClosed } from '@backtalk/proto/facts';

/** Members of a cluster need not agree on the time to the second. */
export const clocksDifferMs = 3_600_000;

export class SettledTurns {
  private readonly closedAtMs = new Map<string, number>();

  get size(): number {
    return this.closedAtMs.size;
  }

  /** Below the floor, where one is given, nothing is remembered in the first place. */
  add(batch: BatchClosed, timeMs: number, floorTimeMs = 0): void {
    if (isBelow(timeMs, floorTimeMs)) return;
    for (const turn of turnsOf(batch)) this.closedAtMs.set(turn, timeMs);
  }

  has(turn: string): boolean {
    return this.closedAtMs.has(turn);
  }

  /** A message above the floor was published after the message at the floor, and a batch that takes it was closed later still. */
  forgetBefore(floorTimeMs: number): void {
    for (const [turn, closedAtMs] of this.closedAtMs)
      if (isBelow(closedAtMs, floorTimeMs)) this.closedAtMs.delete(turn);
  }
}

function isBelow(closedAtMs: number, floorTimeMs: number): boolean {
  return closedAtMs < floorTimeMs - clocksDifferMs;
}

export function turnsOf(batch: BatchClosed): string[] {
  return [...batch.samples, ...batch.settled].map(({ turn }) => turn);
}
