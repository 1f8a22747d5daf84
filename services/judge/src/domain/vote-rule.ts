// Which turns the judge's model votes on. In: a turn, and how far its policy has moved on since its next state was said.
// Out: nothing, or why evidence alone decides. A judge that cannot keep up would else vote only on what is too old to be
// trained on by the time it is judged. Pure.
import { sha256Hex } from '@backtalk/kit';

export interface VoteRule {
  /** Share of turns that get votes, 0 to 1. */
  readonly voteShare: number;
  /** Versions that may have become stable since the next state was said, or lie between answer and stable; 0: any number. */
  readonly versionsBehind: number;
}

export const leftOutReasons = ['share', 'behind'] as const;
export type LeftOut = (typeof leftOutReasons)[number];

const hashEnd = 2 ** 32;

export interface Progress {
  /** Versions that became stable since the next state was said, as far as that is known. */
  readonly since: number;
  /** Versions between the one that answered and the stable one. */
  readonly back: number;
}

/** The same answer for the same turn, on every judge. */
export function leftOut(turn: string, { since, back }: Progress, rule: VoteRule): LeftOut | undefined {
  const { voteShare, versionsBehind } = rule;
  if (Number.parseInt(sha256Hex(turn).slice(0, 8), 16) >= voteShare * hashEnd) return 'share';
  // A judge that has just begun knows nothing of what came before it, but how old an answer is.
  const isBehind = since >= versionsBehind || back > versionsBehind;
  return versionsBehind > 0 && isBehind ? 'behind' : undefined;
}
