// Explicit feedback as a judgement. In: what a person said an answer was worth, the judgement before, if any, and what was said
// next. Out: a later revision that outranks it, and, where it has no words, with those that were said beside it. Pure.
import { TurnJudged, TurnJudged_Source, type FeedbackGiven } from '@backtalk/proto/facts';
import { hindsightOf, hindsightOfFeedback, type DropReason, type Hindsight } from './hints/hindsight.js';
import type { NextState } from './next-state.js';
import { verdictOf, type Verdict } from './verdict-value.js';

/** Of one person on one turn; */
const giverFeedbackMax = 8;
/** and of all who are not the turn's user. */
const othersFeedbackMax = 32;

export interface FeedbackParts {
  readonly feedback: FeedbackGiven;
  readonly before: TurnJudged | undefined;
  /** Nothing where no person or tool spoke yet, or where what was said may not be learned from. */
  readonly next: NextState | undefined;
  readonly session: string;
  readonly revision: number;
}

export interface FeedbackJudgement {
  readonly message: TurnJudged;
  readonly dropped: readonly DropReason[];
}

export function judgeFeedback({ feedback, before, next, session, revision }: FeedbackParts): FeedbackJudgement {
  const { turn, tenant, user, policy, digest, hasScore, score, comment, correction } = feedback;
  // Without a score, a correction says that the answer was wrong; a comment alone leaves the verdict as it was.
  const unscored: Verdict = correction === '' ? verdictOf(before?.verdict ?? 0) : -1;
  const verdict = hasScore ? verdictOf(score) : unscored;
  const isBad = verdict === -1 || correction !== '';
  const said = hindsightOfFeedback([comment, correction], isBad);
  const giver = otherGiver(feedback);
  const { hint, stands } = said.hint === '' ? saidBeside(before, next, { verdict, giver }) : said;
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
    hint,
    stands,
    evidence: [...(before?.evidence ?? []), { name: 'feedback', verdict, detail: digest }],
    source: TurnJudged_Source.SOURCE_FEEDBACK,
    giver,
    advantage: 0,
    hasAdvantage: false,
  });
  return { message, dropped: said.dropped };
}

/**
 * The next revision where feedback without words stands above votes that had not been cast when it was given: the same, with
 * what was said beside it. Nothing where there is no more to say, so also the second time.
 * @param revisions all there are, lowest first
 */
export function withWordsBeside(revisions: readonly TurnJudged[], next: NextState | undefined): TurnJudged | undefined {
  const [first] = revisions;
  const highest = revisions.at(-1);
  if (first?.revision !== 0 || highest?.source !== TurnJudged_Source.SOURCE_FEEDBACK || highest.hint !== '')
    return undefined;
  const verdict = verdictOf(highest.verdict);
  const { hint, stands } = saidBeside(first, next, { verdict, giver: highest.giver });
  return hint === '' ? undefined : TurnJudged.fromPartial({ ...highest, revision: highest.revision + 1, hint, stands });
}

/** Hindsight for a verdict that came without words: that of an earlier judgement as far as it holds, else of what was said next. */
function saidBeside(
  earlier: TurnJudged | undefined,
  next: NextState | undefined,
  { verdict, giver }: { readonly verdict: Verdict; readonly giver: string },
): Pick<Hindsight, 'hint' | 'stands'> {
  if (earlier !== undefined && earlier.hint !== '') {
    if (earlier.verdict === verdict) return earlier;
    // What stands beyond the turn is no matter of what this answer was worth.
    const standing = hindsightOfFeedback([earlier.hint], false);
    if (earlier.stands && standing.hint !== '') return standing;
  }
  if (next === undefined) return { hint: '', stands: false };
  // Who gave the score says how their own words were meant; of another's, only those count that stand.
  const spoken = giver === '' ? verdict : 1;
  return hindsightOf({ next, answer: '' }, [], { verdict, spoken }, 'longest');
}

/**
 * Whether as much was said of a turn as counts: by this giver, or by all who are not its user. Each judgement holds what was
 * said before it, and all of a turn's are read for each: without an end, one turn would hold a judge up.
 */
export function isSaidEnough(feedback: FeedbackGiven, judged: readonly TurnJudged[]): boolean {
  if (judged.some((one) => holdsFeedback(one, feedback.digest))) return false;
  const giver = otherGiver(feedback);
  const said = judged.filter(({ source }) => source === TurnJudged_Source.SOURCE_FEEDBACK);
  // A revision that only adds what was said beside a score is no more of it.
  const givers = [...new Map(said.map((one) => [digestIn(one), one.giver])).values()];
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
  return judged.source === TurnJudged_Source.SOURCE_FEEDBACK && digestIn(judged) === digest;
}

function digestIn({ evidence }: TurnJudged): string | undefined {
  return evidence.at(-1)?.detail;
}
