// Which samples of a batch another judge could have judged otherwise: what an operator has judged again, and what a replay takes of that.
import type { BatchSample } from '@backtalk/proto/facts';

/** A turn as it was judged first: not what a person or a rule said of it since, no step of an attempt, and no rehearsed question. */
export function isFirstJudgement({ question, revision, attempt }: BatchSample): boolean {
  return question === 0 && revision === 0 && attempt === undefined;
}
