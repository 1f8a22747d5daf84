// One voice cannot take learning over. In one batch: where three or more users wait, none gives more than a quarter of it. Over eight
// versions: where another user waits, none gives more than half. A voice is the turn's user, and also who gave the feedback that made it.
import type { BatchSample } from '@backtalk/proto/facts';

import type { Weighed } from './weigh-turns.js';

type Sample = Pick<BatchSample, 'tenant' | 'user' | 'giver'>;

const voices: readonly ((sample: Sample) => string)[] = [
  ({ tenant, user }) => `${tenant}.${user}`,
  ({ tenant, user, giver }) => `${tenant}.${giver || user}`,
];

const batchShare = { from: 3, share: 1 / 4 };
const versionsShare = { from: 2, share: 1 / 2, versions: 8 };

/** The samples of the newest versions, version by version; at most seven. */
export type RecentSamples = readonly (readonly (Sample & Pick<BatchSample, 'effective'>)[])[];

/**
 * All that wait are of one tenant. `atLeast` is what a batch that has waited long enough needs: up to there the caps give way step by
 * step, fewest-first, since they must never hold a batch back without end.
 */
export function pickUnderCap(
  waiting: readonly Weighed[],
  size: number,
  atLeast: number,
  recent: RecentSamples = [],
): Weighed[] {
  const caps = voices.map((of): Cap => {
    const speaking = new Set(waiting.map((weighed) => of(sampleOf(weighed)))).size;
    const most = speaking >= batchShare.from ? Math.max(1, Math.floor(size * batchShare.share)) : size;
    if (speaking < versionsShare.from) return { of, mostOf: () => most };
    const given = countBy(
      recent.flat().filter(({ effective }) => effective),
      of,
    );
    const budget = Math.floor(versionsShare.versions * size * versionsShare.share);
    return { of, mostOf: (voice) => Math.min(most, Math.max(1, budget - (given.get(voice) ?? 0))) };
  });
  const picked = takeUpTo(waiting, size, caps, 0);
  for (let wider = 1; picked.size < atLeast && wider <= size; wider += 1)
    for (const weighed of takeUpTo(waiting, atLeast, caps, wider, picked)) picked.add(weighed);
  return waiting.filter((weighed) => picked.has(weighed));
}

interface Cap {
  readonly of: (sample: Sample) => string;
  readonly mostOf: (voice: string) => number;
}

function takeUpTo(
  waiting: readonly Weighed[],
  size: number,
  caps: readonly Cap[],
  wider: number,
  already: ReadonlySet<Weighed> = new Set(),
): Set<Weighed> {
  const picked = new Set(already);
  const shares = caps.map(({ of, mostOf }) => ({ of, mostOf, given: countBy([...picked].map(sampleOf), of) }));
  for (const weighed of waiting) {
    if (picked.size >= size) break;
    const sample = sampleOf(weighed);
    const isOver = shares.some(({ of, mostOf, given }) => {
      const voice = of(sample);
      return (given.get(voice) ?? 0) >= mostOf(voice) + wider;
    });
    if (picked.has(weighed) || isOver) continue;
    picked.add(weighed);
    for (const { of, given } of shares) given.set(of(sample), (given.get(of(sample)) ?? 0) + 1);
  }
  return picked;
}

function sampleOf({ candidate: { tenant, user, judged } }: Weighed): Sample {
  return { tenant, user, giver: judged.giver };
}

function countBy<T>(items: readonly T[], of: (item: T) => string): Map<string, number> {
  const counts = new Map<string, number>();
  for (const item of items) counts.set(of(item), (counts.get(of(item)) ?? 0) + 1);
  return counts;
}
