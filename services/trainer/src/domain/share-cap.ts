// Who has had their share of a batch?
// In: effective samples, oldest first. Out: those that go into a batch of a given size.
// One voice cannot take a batch over: where three or more users wait, none gives more than a quarter of it.
import type { Weighed } from './weigh-turns.js';

const USERS_FROM = 3;
const SHARE = 1 / 4;

// `atLeast` is what a batch that has waited long enough needs: up to there the cap gives way, fewest-first, since it must never hold
// a batch back for ever.
export function pickUnderCap(waiting: readonly Weighed[], size: number, atLeast: number): Weighed[] {
  const users = new Set(waiting.map(userOf));
  const cap = users.size >= USERS_FROM ? Math.max(1, Math.floor(size * SHARE)) : size;
  const picked = takeUpTo(waiting, size, cap);
  for (let wider = cap + 1; picked.size < atLeast && wider <= size; wider += 1) {
    for (const weighed of takeUpTo(waiting, atLeast, wider, picked)) picked.add(weighed);
  }
  return waiting.filter((weighed) => picked.has(weighed));
}

function takeUpTo(
  waiting: readonly Weighed[],
  size: number,
  cap: number,
  already: ReadonlySet<Weighed> = new Set(),
): Set<Weighed> {
  const picked = new Set(already);
  const given = new Map<string, number>();
  for (const weighed of picked) given.set(userOf(weighed), (given.get(userOf(weighed)) ?? 0) + 1);
  for (const weighed of waiting) {
    const count = given.get(userOf(weighed)) ?? 0;
    if (picked.size >= size) break;
    if (picked.has(weighed) || count >= cap) continue;
    picked.add(weighed);
    given.set(userOf(weighed), count + 1);
  }
  return picked;
}

function userOf({ candidate }: Weighed): string {
  return `${candidate.tenant}.${candidate.user}`;
}
