// The running mean of the verdicts of a policy's users, batch by batch, oldest user first. A baseline must not depend on when a turn
// happened to arrive, so turns outside a batch do not move it.
import type { UserBaseline } from '@backtalk/proto/facts';

export interface UserVerdict {
  readonly user: string;
  readonly verdict: number;
}

/** Past this many verdicts the mean follows like an exponential one: a user's standards change. */
const memoryVerdicts = 128;
/** A fact stays small: users who have not spoken for longest are forgotten first. */
const usersMax = 2_000;

export function baselineOf(baselines: readonly UserBaseline[], user: string): number {
  return baselines.find((entry) => entry.user === user)?.mean ?? 0;
}

export function baselinesAfter(earlier: readonly UserBaseline[], verdicts: readonly UserVerdict[]): UserBaseline[] {
  const users = new Map(earlier.map((entry) => [entry.user, entry]));
  for (const { user, verdict } of verdicts) {
    if (verdict === 0) continue;
    const before = users.get(user) ?? { user, mean: 0, count: 0 };
    const count = Math.min(before.count + 1, memoryVerdicts);
    users.delete(user);
    users.set(user, { user, mean: before.mean + (verdict - before.mean) / count, count });
  }
  return [...users.values()].slice(-usersMax);
}
