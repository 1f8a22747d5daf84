// Measures the likelihoods that thresholds are fitted on. In: labelled items (never those that a judge is tested on),
// a scored voter, an engine. Out: for each item and wording, how likely its next state is under each list.
import { saidIn, type JudgeEngine, type ScoredVoter, type Wordings } from '@backtalk/judge';
import type { Measured } from './fit-thresholds.js';
import type { LabelledItem } from './items.js';

/** Asked for at once: an engine computes them in one go. */
const together = 4;

export interface MeasureOptions {
  readonly voter: ScoredVoter;
  readonly engine: JudgeEngine;
  readonly wordings: Wordings;
  readonly items: readonly LabelledItem[];
  readonly voteWaitMs: number;
  readonly onProgress?: (done: number, all: number) => void;
}

export async function measureLikelihoods(options: MeasureOptions): Promise<Measured[]> {
  const { voter, engine, wordings, items, voteWaitMs, onProgress } = options;
  // One wording after the other: an engine remembers only so many beginnings.
  const asked = (['user', 'tool'] as const).flatMap((role) =>
    wordings[role].flatMap((wording) => items.filter((item) => item.role === role).map((item) => ({ wording, item }))),
  );
  const measured: Measured[] = [];
  for (let at = 0; at < asked.length; at += together) {
    const some = asked.slice(at, at + together).map(async ({ wording, item }): Promise<Measured> => {
      const found = await voter.likelihoods(engine, wording, saidIn({ role: item.role, text: item.next }), {
        deadlineMs: voteWaitMs,
      });
      return { wording: wording.id, item: item.id, label: item.label, found };
    });
    measured.push(...(await Promise.all(some)));
    onProgress?.(measured.length, asked.length);
  }
  return measured;
}
