// The running mean of the verdicts of a policy's users, batch by batch, oldest user first. A baseline must not depend on when a turn
// happened to arrive, so turns outside a batch do not move it.
import type { UserBaseline } from '@backtalk/proto/facts';

export interface UserVerdict {
  readonly user: string;
  readonly verdict: number;
  /** The reward of a step of an attempt, where it is one: then it is no verdict. */
  readonly stepReward?: number | undefined;
}

/** Past this many verdicts the mean follows like an exponential one: a user's standards change. */
const memoryVerdicts = 128;
/** A fact stays small: users who have not spoken for longest are forgotten first. */
const usersMax = 2_000;

export function baselineOf(baselines: readonly UserBaseline[], user: string): number {
  return baselines.find((entry) => entry.user === user)?.mean ?? 0;
}

/** Of the rewards of steps of attempts. */
export function stepMeanOf(baselines: readonly UserBaseline[], user: string): number {
  return baselines.find((entry) => entry.user === user)?.stepMean ?? 0;
}

export function baselinesAfter(earlier: readonly UserBaseline[], verdicts: readonly UserVerdict[]): UserBaseline[] {
  const users = new Map(earlier.map((entry) => [entry.user, entry]));
  for (const { user, verdict, stepReward } of verdicts) {
    if (verdict === 0 && stepReward === undefined) continue;
    const before = users.get(user) ?? { user, mean: 0, count: 0, stepMean: 0, stepCount: 0 };
    const [mean, count] =
      stepReward === undefined ? moved(before.mean, before.count, verdict) : [before.mean, before.count];
    const [stepMean, stepCount] =
      stepReward === undefined
        ? [before.stepMean, before.stepCount]
        : moved(before.stepMean, before.stepCount, stepReward);
    users.delete(user);
    users.set(user, { user, mean, count, stepMean, stepCount });
  }
  return [...users.values()].slice(-usersMax);
}

function moved(mean: number, count: number, value: number): [number, number] {
  const next = Math.min(count + 1, memoryVerdicts);
  return [mean + (value - mean) / next, next];
}
