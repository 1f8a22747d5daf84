// Turns that some batch has taken or settled, as far as memory holds them: those of the newest batches, and those of batches from before
// turns were marked in the log. Of all others their marks say it (SampleTaken).
import type { BatchClosed } from '@backtalk/proto/facts';
import { isOfTurn } from './rehearsal.js';

/** A turn's id and its place in the map take about 200 bytes. */
const turnsMax = 50_000;

interface Remembered {
  readonly number: number;
  readonly turns: readonly string[];
}

export class SettledTurns {
  private readonly known = new Set<string>();
  private readonly unmarked = new Set<string>();
  /** Newest last, without a gap. */
  private readonly batches: Remembered[] = [];

  constructor(private readonly most = turnsMax) {}

  get size(): number {
    return this.known.size + this.unmarked.size;
  }

  add(batch: BatchClosed): void {
    const turns = turnsOf(batch);
    if (!batch.marked) for (const turn of turns) this.unmarked.add(turn);
    else for (const turn of turns) this.known.add(turn);
    this.batches.push({ number: batch.number, turns: batch.marked ? turns : [] });
    while (this.known.size > this.most && this.batches.length > 0)
      for (const turn of this.batches.shift()?.turns ?? []) this.known.delete(turn);
  }

  has(turn: string): boolean {
    return this.known.has(turn) || this.unmarked.has(turn);
  }

  /** Then what `has` says of this batch's turns is all that there is to say. */
  remembers(batch: number): boolean {
    const [oldest] = this.batches;
    return oldest !== undefined && batch >= oldest.number;
  }
}

export function turnsOf(batch: BatchClosed): string[] {
  return [...batch.samples.filter(isOfTurn), ...batch.settled].map(({ turn }) => turn);
}
