// What a turn's verdict is worth: A = r − b.
// In: verdict (or the at-least-one rule's advantage), baseline mode and the user's baseline of earlier batches. Out: the advantage.
// Never updates a baseline.

export type BaselineMode = 'running' | 'none';

export interface Verdict {
  readonly verdict: number;
  /** Set by the at-least-one rule: used as it is. */
  readonly advantageGiven: number | undefined;
}

/** A scalar reward below this says nothing. */
const advantageFloor = 0.05;

export function advantageOf(judged: Verdict, mode: BaselineMode, baseline: number): number {
  if (judged.advantageGiven !== undefined) return judged.advantageGiven;
  if (judged.verdict === 0) return 0;
  return mode === 'none' ? judged.verdict : judged.verdict - baseline;
}

export function rewards(judged: Verdict, advantage: number): boolean {
  const spoken = judged.verdict !== 0 || judged.advantageGiven !== undefined;
  return spoken && Math.abs(advantage) > advantageFloor;
}
