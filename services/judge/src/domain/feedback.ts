// Explicit feedback as a judgement. In: what a person said an answer was worth, and the judgement before, if any.
// Out: a later revision that outranks it. Pure.
import { TurnJudged, TurnJudged_Source, type FeedbackGiven } from '@backtalk/proto/facts';
import { hindsightOfFeedback, type DropReason } from './hints/hindsight.js';
import { verdictOf, type Verdict } from './verdict-value.js';

export interface FeedbackParts {
  readonly feedback: FeedbackGiven;
  readonly before: TurnJudged | undefined;
  readonly session: string;
  readonly revision: number;
}

export interface FeedbackJudgement {
  readonly message: TurnJudged;
  readonly dropped: readonly DropReason[];
}

export function judgeFeedback({ feedback, before, session, revision }: FeedbackParts): FeedbackJudgement {
  const { turn, tenant, user, policy, giver, digest, hasScore, score, comment, correction } = feedback;
  // Without a score, a correction says that the answer was wrong; a comment alone leaves the verdict as it was.
  const unscored: Verdict = correction === '' ? verdictOf(before?.verdict ?? 0) : -1;
  const verdict = hasScore ? verdictOf(score) : unscored;
  const isBad = verdict === -1 || correction !== '';
  const said = hindsightOfFeedback([comment, correction], isBad);
  // What was said before goes on where this says nothing new.
  const isSilent = said.hint === '' && said.dropped.length === 0 && verdict === before?.verdict;
  const message = TurnJudged.fromPartial({
    ...(before ?? {}),
    turn,
    tenant,
    user,
    policy,
    session,
    revision,
    verdict,
    confidence: 1,
    hint: isSilent ? before.hint : said.hint,
    stands: isSilent ? before.stands : said.stands,
    evidence: [...(before?.evidence ?? []), { name: 'feedback', verdict, detail: digest }],
    source: TurnJudged_Source.SOURCE_FEEDBACK,
    giver: giver === user ? '' : giver,
    advantage: 0,
    hasAdvantage: false,
  });
  return { message, dropped: said.dropped };
}

/** Whether a judgement already holds this feedback. */
export function holdsFeedback(judged: TurnJudged, digest: string): boolean {
  return judged.source === TurnJudged_Source.SOURCE_FEEDBACK && judged.evidence.at(-1)?.detail === digest;
}
