// What each waiting turn brings: a signal, an anchor, or nothing; the same input gives the same sorting, whatever the order of arrival.
import { inForce, ownWish } from '@backtalk/kit';

import type { Candidate } from './candidate.js';
import { nearDuplicates, type AnswerSketch } from './near-duplicate.js';
import { anchorsMax, type Recipe } from './recipe.js';
import { distils, worthOf, type LearningContext } from './sample-worth.js';
import type { SettleReason } from './settle-reason.js';
import { stepsAmong, type RewardedStep } from './step-rewards.js';

export interface Weighed {
  readonly candidate: Candidate;
  readonly advantage: number;
  readonly hinted: boolean;
  /** Its own user asks for something. */
  readonly wished: boolean;
  /** Versions between the one that answered and the next parent. */
  readonly back: number;
  /** Of an attempt at a task. */
  readonly step?: RewardedStep | undefined;
}

export interface Settling {
  readonly candidate: Candidate;
  readonly reason: string;
  readonly step?: RewardedStep | undefined;
}

/** Each list is ordered by arrival, oldest first. */
export interface Waiting {
  readonly effective: readonly Weighed[];
  readonly idle: readonly Weighed[];
  readonly settled: readonly Settling[];
  /** Steps of attempts that wait for their outcome, or for others of their group. */
  readonly attempts: readonly Candidate[];
  /** When the first of those waits no longer, Infinity for none. */
  readonly attemptsUntilMs: number;
}

/** Repetitions come close together; comparing each with all would cost the square of what waits. */
const comparedMax = 64;

export function weighTurns(candidates: readonly Candidate[], context: LearningContext, recipe: Recipe): Waiting {
  const signals: Weighed[] = [];
  const silent: Weighed[] = [];
  const settled: Settling[] = [];
  const attempts: Candidate[] = [];
  let attemptsUntilMs = Infinity;
  const steps = stepsAmong(candidates, context, recipe);
  for (const candidate of [...candidates].sort((a, b) => a.sequence - b.sequence)) {
    const found = steps.get(candidate.turn);
    const step = found?.kind === 'rewarded' ? found : undefined;
    const worth = worthOf(candidate, context, recipe, found);
    if (worth.kind === 'waiting') {
      attempts.push(candidate);
      attemptsUntilMs = Math.min(attemptsUntilMs, worth.untilMs);
    } else if (worth.kind === 'settled') settled.push({ candidate, reason: worth.reason, step });
    else if (worth.kind === 'effective') {
      const { advantage, hinted, wished, back } = worth;
      signals.push({ candidate, advantage, hinted, wished, back, step });
    } else silent.push({ candidate, advantage: worth.advantage, hinted: false, wished: false, back: worth.back, step });
  }
  // Signals come first: of two equal turns, the one with a signal stays.
  const unique = new UniqueTurns();
  const effective = signals.filter((weighed) => {
    const { judged } = weighed.candidate;
    return unique.adds(weighed, [judged.verdict, judged.hint, ownWish(judged).text].join(' '));
  });
  const idle = silent.filter((weighed) => unique.adds(weighed));

  // Turns without a signal are kept while there is a lesson to hold them to: one in force, or one that a waiting hint may begin.
  const hinted = effective.filter((weighed) => weighed.hinted || weighed.wished);
  const useful = idle.filter(({ candidate: { tenant, user } }) => {
    const isHinted = hinted.some(
      ({ candidate }) => candidate.tenant === tenant && (recipe.lessonScope === 'policy' || candidate.user === user),
    );
    return distils(recipe) && (isHinted || inForce(context.lessons, { tenant, user }).length > 0);
  });
  const anchors = newestOfEach(useful, anchorsMax(recipe));
  const unkept = idle
    .filter((weighed) => !anchors.includes(weighed))
    .map((weighed) => settling(weighed, useful.includes(weighed) ? 'anchor_surplus' : 'nothing_to_learn'));
  return {
    effective,
    idle: anchors,
    settled: [...settled, ...unique.repeated, ...unkept],
    attempts,
    attemptsUntilMs,
  };
}

/** Of each tenant, since a batch holds one. */
function newestOfEach(weighed: readonly Weighed[], most: number): Weighed[] {
  const taken = new Map<string, number>();
  const newest = weighed.toReversed().filter(({ candidate: { tenant } }) => {
    const count = (taken.get(tenant) ?? 0) + 1;
    taken.set(tenant, count);
    return count <= most;
  });
  return newest.reverse();
}

interface Waited {
  readonly sketch: AnswerSketch;
  readonly signal: string;
}

/** A near-duplicate of something that waits counts once. Only the same user repeats; others agree. */
class UniqueTurns {
  readonly repeated: Settling[] = [];
  private readonly recent = new Map<string, Waited[]>();

  /** @param signal what is said of the answer: two things that are said of one answer are two; where nothing is, any turn like it will do */
  adds(weighed: Weighed, signal?: string): boolean {
    const { sketch, tenant, user } = weighed.candidate;
    // Attempts at one task are alike, and each counts.
    if (sketch === undefined || weighed.step !== undefined) return true;
    const key = `${tenant}.${user}`;
    const recent = this.recent.get(key) ?? [];
    const isSaid = (other: Waited) => signal === undefined || signal === other.signal;
    if (recent.some((other) => isSaid(other) && nearDuplicates(sketch, other.sketch))) {
      this.repeated.push(settling(weighed, 'duplicate'));
      return false;
    }
    this.recent.set(key, [...recent, { sketch, signal: signal ?? '' }].slice(-comparedMax));
    return true;
  }
}

export function settling({ candidate, step }: Weighed, reason: SettleReason): Settling {
  return { candidate, reason, step };
}
