// The at-least-one rule: a session that ends without an effective sample gives its best candidate. In: the judgements
// of a session. Out: which turn is the candidate, and with what advantage fresh votes keep it. Pure.
import { ownWish } from '@backtalk/kit';
import { TurnJudged, TurnJudged_Source } from '@backtalk/proto/facts';
import { judgeFields, wireVote, type JudgeMark } from './judgement.js';
import { majority, meanVote, type CastVote } from './verdict.js';
import { verdictOf } from './verdict-value.js';

/** Of the fresh votes. */
const agreeingShareMin = 2 / 3;

/** A sample that would train by itself. */
export function isEffective(judged: TurnJudged): boolean {
  const { verdict, hint, hasAdvantage, advantage } = judged;
  return verdict !== 0 || hint !== '' || ownWish(judged).text !== '' || (hasAdvantage && advantage !== 0);
}

/** The turn whose votes lean most; of equals, the latest. */
export function bestCandidate(judged: readonly TurnJudged[]): TurnJudged | undefined {
  const [first, ...rest] = judged;
  if (first === undefined) return undefined;
  return rest.reduce((best, next) => (Math.abs(leaningOf(next)) >= Math.abs(leaningOf(best)) ? next : best), first);
}

export function leaningOf(judged: TurnJudged): number {
  const valid = judged.votes.filter((vote) => vote.valid);
  return valid.length === 0 ? 0 : valid.reduce((sum, { verdict }) => sum + verdict, 0) / valid.length;
}

/** Nothing when the fresh votes do not agree, or agree on nothing. */
export function agreedAdvantage(votes: readonly CastVote[]): number | undefined {
  const { verdict, confidence } = majority(votes);
  return verdict === 0 || confidence < agreeingShareMin ? undefined : meanVote(votes);
}

export function keepCandidate(
  candidate: TurnJudged,
  revision: number,
  advantage: number,
  votes: readonly CastVote[],
  mark: JudgeMark,
): TurnJudged {
  return TurnJudged.fromPartial({
    ...candidate,
    ...(votes.length === 0 ? {} : { ...judgeFields(mark), votes: votes.map(wireVote) }),
    revision,
    verdict: verdictOf(advantage),
    confidence: votes.length === 0 ? candidate.confidence : majority(votes).confidence,
    source: TurnJudged_Source.SOURCE_AT_LEAST_ONE,
    advantage,
    hasAdvantage: true,
  });
}
