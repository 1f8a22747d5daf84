// Has some batch taken or settled this turn already?
// In: batches as they are closed, with the broker's time. Out: yes or no. One sample per turn id, ever.
// It remembers the batches that may still have messages above the ack floor; anything older is known by the floor itself.
import type { BatchClosed } from '@backtalk/proto/facts';

// Members of a cluster need not agree on the time to the second.
export const CLOCKS_DIFFER_MS = 3_600_000;

export class SettledTurns {
  private readonly closedAtMs = new Map<string, number>();

  // `floorTimeMs`: what was closed long before is forgotten at once.
  constructor(private floorTimeMs = 0) {}

  get size(): number {
    return this.closedAtMs.size;
  }

  add(batch: BatchClosed, timeMs: number): void {
    if (this.isForgotten(timeMs)) return;
    for (const turn of turnsOf(batch)) this.closedAtMs.set(turn, timeMs);
  }

  has(turn: string): boolean {
    return this.closedAtMs.has(turn);
  }

  // A message above the floor was published after the message at the floor, and a batch that takes it was closed later still.
  forgetBefore(floorTimeMs: number): void {
    this.floorTimeMs = floorTimeMs;
    for (const [turn, closedAtMs] of this.closedAtMs) if (this.isForgotten(closedAtMs)) this.closedAtMs.delete(turn);
  }

  private isForgotten(closedAtMs: number): boolean {
    return closedAtMs < this.floorTimeMs - CLOCKS_DIFFER_MS;
  }
}

export function turnsOf(batch: BatchClosed): string[] {
  return [...batch.samples, ...batch.settled].map(({ turn }) => turn);
}
