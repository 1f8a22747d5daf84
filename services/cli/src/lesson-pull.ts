// How much of each step was for a lesson's sake. In: batches and reports of a policy. Out: by batch, the part of the gradient that came from
// samples whose teacher was shown the lesson; where it was shown several, each has it. Pure.
import type { BatchClosed, WeightsTrained } from '@backtalk/proto/facts';

export function pullOf(
  lesson: string,
  batches: readonly Pick<BatchClosed, 'number' | 'samples'>[],
  trained: readonly Pick<WeightsTrained, 'batch' | 'report'>[],
): ReadonlyMap<number, number> {
  const reports = new Map(trained.map(({ batch, report }) => [batch, report?.samples ?? []]));
  const pulls = batches.flatMap(({ number, samples }): [number, number][] => {
    const taught = new Set(samples.flatMap(({ turn, lessons }) => (lessons.includes(lesson) ? [turn] : [])));
    const reported = reports.get(number) ?? [];
    // Reports of before say nothing of it.
    if (taught.size === 0 || reported.every(({ gradientShare }) => gradientShare === 0)) return [];
    return [
      [number, reported.reduce((sum, { turn, gradientShare }) => sum + (taught.has(turn) ? gradientShare : 0), 0)],
    ];
  });
  return new Map(pulls);
}

export function percent(share: number): string {
  return `${(100 * share).toFixed(0)} %`;
}
