// One voice cannot take a batch over: where three or more users wait, none gives more than a quarter of it; where two or more tenants
// wait, none gives more than half, however many users it has.
import type { Weighed } from './weigh-turns.js';

interface Voice {
  readonly of: (weighed: Weighed) => string;
  /** So many must wait before the share is capped. */
  readonly from: number;
  readonly share: number;
}

const voices: readonly Voice[] = [
  { of: ({ candidate }) => `${candidate.tenant}.${candidate.user}`, from: 3, share: 1 / 4 },
  { of: ({ candidate }) => candidate.tenant, from: 2, share: 1 / 2 },
];

/**
 * `atLeast` is what a batch that has waited long enough needs: up to there the caps give way step by step, fewest-first, since they must
 * never hold a batch back without end.
 */
export function pickUnderCap(waiting: readonly Weighed[], size: number, atLeast: number): Weighed[] {
  const caps = voices.map(({ of, from, share }) => {
    const speaking = new Set(waiting.map(of)).size;
    return { of, most: speaking >= from ? Math.max(1, Math.floor(size * share)) : size };
  });
  const picked = takeUpTo(waiting, size, caps);
  for (let wider = 1; picked.size < atLeast && wider <= size; wider += 1) {
    const given = caps.map(({ of, most }) => ({ of, most: most + wider }));
    for (const weighed of takeUpTo(waiting, atLeast, given, picked)) picked.add(weighed);
  }
  return waiting.filter((weighed) => picked.has(weighed));
}

interface Cap {
  readonly of: (weighed: Weighed) => string;
  readonly most: number;
}

function takeUpTo(
  waiting: readonly Weighed[],
  size: number,
  caps: readonly Cap[],
  already: ReadonlySet<Weighed> = new Set(),
): Set<Weighed> {
  const picked = new Set(already);
  const shares = caps.map(({ of, most }) => ({ of, most, given: new Map<string, number>() }));
  for (const weighed of picked)
    for (const { of, given } of shares) given.set(of(weighed), (given.get(of(weighed)) ?? 0) + 1);
  for (const weighed of waiting) {
    if (picked.size >= size) break;
    if (picked.has(weighed) || shares.some(({ of, most, given }) => (given.get(of(weighed)) ?? 0) >= most)) continue;
    picked.add(weighed);
    for (const { of, given } of shares) given.set(of(weighed), (given.get(of(weighed)) ?? 0) + 1);
  }
  return picked;
}
