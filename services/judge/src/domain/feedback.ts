// Explicit feedback as a judgement. In: what a person said an answer was worth, and the judgement before, if any.
// Out: a later revision that outranks it. Pure.
import { TurnJudged, TurnJudged_Source, type FeedbackGiven } from '@backtalk/proto/facts';
import { hindsightOfFeedback, type DropReason } from './hints/hindsight.js';
import { verdictOf, type Verdict } from './verdict-value.js';

/** Of one person on one turn; */
const giverFeedbackMax = 8;
/** and of all who are not the turn's user. */
const othersFeedbackMax = 32;

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
  const { turn, tenant, user, policy, digest, hasScore, score, comment, correction } = feedback;
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
    giver: otherGiver(feedback),
    advantage: 0,
    hasAdvantage: false,
  });
  return { message, dropped: said.dropped };
}

/**
 * Whether as much was said of a turn as counts: by this giver, or by all who are not its user. Each judgement holds what was
 * said before it, and all of a turn's are read for each: without an end, one turn would hold a judge up.
 */
export function isSaidEnough(feedback: FeedbackGiven, judged: readonly TurnJudged[]): boolean {
  const giver = otherGiver(feedback);
  const givers = judged.filter(({ source }) => source === TurnJudged_Source.SOURCE_FEEDBACK).map((one) => one.giver);
  const own = givers.filter((one) => one === giver).length;
  const others = givers.filter((one) => one !== '').length;
  return own >= giverFeedbackMax || (giver !== '' && others >= othersFeedbackMax);
}

/** Empty for the turn's own user. */
function otherGiver({ giver, user }: Pick<FeedbackGiven, 'giver' | 'user'>): string {
  return giver === user ? '' : giver;
}

/** Whether a judgement already holds this feedback. */
export function holdsFeedback(judged: TurnJudged, digest: string): boolean {
  return judged.source === TurnJudged_Source.SOURCE_FEEDBACK && judged.evidence.at(-1)?.detail === digest;
}
