// Explicit feedback as a judgement. In: what a person said an answer was worth, the judgement before, if any, and what was said
// next. Out: a later revision: a score outranks what was judged, a comment is a hint beside it. What the turn's user asks for stays
// theirs, whatever another person says of the answer. Pure.
import { ownWish, type OwnWords } from '@backtalk/kit';
import { TurnJudged, TurnJudged_Source, type FeedbackGiven } from '@backtalk/proto/facts';
import { hindsightOf, hindsightOfFeedback, type DropReason, type Hindsight } from './hints/hindsight.js';
import type { StandingSentences } from './hints/stands.js';
import type { NextState } from './next-state.js';
import { verdictOf, type Verdict } from './verdict-value.js';

/** Of one person on one turn; */
const giverFeedbackMax = 8;
/** and of all who are not the turn's user. */
const othersFeedbackMax = 32;

/** What else there is of a turn. */
export interface Beside {
  /** Nothing where no person or tool spoke yet, or where what was said may not be learned from. */
  readonly next: NextState | undefined;
  /** What a comment says of the answer by its words; 0 where no judge here reads them. */
  readonly read: (comment: string) => Verdict;
  readonly standing: StandingSentences;
}

export interface FeedbackParts extends Beside {
  readonly feedback: FeedbackGiven;
  readonly before: TurnJudged | undefined;
  readonly session: string;
  readonly revision: number;
}

export interface FeedbackJudgement {
  readonly message: TurnJudged;
  readonly dropped: readonly DropReason[];
}

export function judgeFeedback(parts: FeedbackParts): FeedbackJudgement {
  const { feedback, before, next, read, standing, session, revision } = parts;
  const { turn, tenant, user, policy, digest, comment, correction } = feedback;
  const verdict = verdictGiven(parts);
  // Praise is no hindsight, also where votes find the answer bad.
  const isBad = isComment(feedback) ? verdict === -1 && read(comment) !== 1 : verdict === -1 || correction !== '';
  const said = hindsightOfFeedback([comment, correction], isBad, standing);
  const voice: Voice = { verdict, giver: otherGiver(feedback), standing };
  const { hint, stands } = said.hint === '' ? saidBeside(before, next, voice) : said;
  const message = TurnJudged.fromPartial({
    ...(before ?? {}),
    turn,
    tenant,
    user,
    policy,
    session,
    revision,
    verdict,
    confidence: isComment(feedback) && before !== undefined ? before.confidence : 1,
    hint,
    // What votes wrote may be the very thing that is corrected.
    otherHints: hint === before?.hint ? before.otherHints : [],
    stands,
    evidence: [...(before?.evidence ?? []), { name: 'feedback', verdict, detail: digest }],
    source: TurnJudged_Source.SOURCE_FEEDBACK,
    giver: voice.giver,
    advantage: 0,
    hasAdvantage: false,
    wish: undefined,
  });
  const wish = wishAfter(said, before, next, voice);
  const isTold = isSame(wish, ownWish(message));
  return { message: isTold ? message : { ...message, wish: { ...wish, bare: false } }, dropped: said.dropped };
}

/** Whether it has words alone: they say what they say, and no verdict. */
export function isComment({ hasScore, correction }: FeedbackGiven): boolean {
  return !hasScore && correction === '';
}

/** A correction without a score says that the answer was wrong; a comment alone decides where nothing else does. */
function verdictGiven({ feedback, before, read }: FeedbackParts): Verdict {
  if (feedback.hasScore) return verdictOf(feedback.score);
  if (!isComment(feedback)) return -1;
  const earlier = verdictOf(before?.verdict ?? 0);
  return earlier === 0 ? read(feedback.comment) : earlier;
}

/**
 * The next revision where feedback stands above votes that had not been cast when it was given: what it would be had they come first.
 * Nothing where there is no more to say, so also the second time.
 * @param revisions all there are, lowest first
 * @param given the feedback that they hold, in any order
 */
export function withVotesBelow(
  revisions: readonly TurnJudged[],
  given: readonly FeedbackGiven[],
  beside: Beside,
): TurnJudged | undefined {
  const [first] = revisions;
  const highest = revisions.at(-1);
  if (first?.revision !== 0 || highest === undefined) return undefined;
  // Its attempt came to an end before it was judged, or went on all the same.
  const { outcome } = highest;
  if (highest.source === TurnJudged_Source.SOURCE_OUTCOME) return { ...first, revision: highest.revision + 1, outcome };
  if (highest.source !== TurnJudged_Source.SOURCE_FEEDBACK) return undefined;
  // What was kept of a session stands between the two: then votes came first.
  if (revisions.some(({ source }) => source === TurnJudged_Source.SOURCE_AT_LEAST_ONE)) return undefined;
  const { session } = first;
  const revision = highest.revision + 1;
  let folded = first;
  for (const digest of digestsIn(highest)) {
    const feedback = given.find((one) => one.digest === digest);
    // Given since the log was read: who stores it asks again.
    if (feedback === undefined) return undefined;
    folded = judgeFeedback({ ...beside, feedback, before: folded, session, revision }).message;
  }
  const isTold = folded.verdict === highest.verdict && folded.hint === highest.hint && folded.stands === highest.stands;
  if (folded === first || (isTold && isSame(ownWish(folded), ownWish(highest)))) return undefined;
  // The attempt may have come to its end between the two.
  return { ...folded, outcome };
}

/** Of all feedback that a judgement holds, oldest first. */
export function digestsIn({ evidence }: TurnJudged): string[] {
  return evidence.filter(({ name }) => name === 'feedback').map(({ detail }) => detail);
}

type Words = Pick<Hindsight, 'hint' | 'stands' | 'wished'>;

interface Voice {
  readonly verdict: Verdict;
  /** Empty for the turn's own user. */
  readonly giver: string;
  readonly standing: StandingSentences;
}

const noWords: Words = { hint: '', stands: false };

/** Hindsight for a verdict that came without words: that of an earlier judgement as far as it holds, else of what was said next. */
function saidBeside(before: TurnJudged | undefined, next: NextState | undefined, voice: Voice): Words {
  if (before !== undefined && before.hint !== '') {
    if (before.verdict === voice.verdict) return before;
    // What stands beyond the turn is no matter of what this answer was worth.
    const standing = standingIn(before, voice);
    if (standing.hint !== '') return standing;
  }
  return saidNext(next, voice);
}

/** What the turn's user asked for, whatever another person thinks of the answer; of two wishes that stand, the later. */
function wishAfter(said: Words, before: TurnJudged | undefined, next: NextState | undefined, voice: Voice): OwnWords {
  const earlier = before === undefined ? noWords : asWords(ownWish(before));
  const isOwn = voice.giver === '';
  if (isOwn && said.hint !== '') return asWish(said.stands || !earlier.stands ? said : standingIn(earlier, voice));
  // Another's score says nothing of what the user meant by their words; their own does.
  const kept = isOwn && voice.verdict !== -1 ? standingIn(earlier, voice) : earlier;
  return asWish(kept.hint === '' ? heardNext(next, voice) : kept);
}

function heardNext(next: NextState | undefined, voice: Voice): Words {
  const said = saidNext(next, voice);
  return said.told === true ? noWords : said;
}

function saidNext(next: NextState | undefined, { verdict, giver, standing }: Voice): Words & Pick<Hindsight, 'told'> {
  if (next === undefined) return noWords;
  // Who gave the score says how their own words were meant; of another's, only those count that stand.
  const spoken = giver === '' ? verdict : 1;
  return hindsightOf({ next, answer: '' }, [], { verdict, spoken }, { choice: 'longest', standing });
}

function standingIn({ hint, stands }: Words, { standing }: Voice): Words {
  if (!stands) return noWords;
  const said = hindsightOfFeedback([hint], false, standing);
  // What was heard once is not unsaid; and put on one line, sentences without an end are one.
  return said.hint === '' && said.dropped.length === 0 ? { hint, stands } : said;
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

function asWords({ text, stands }: OwnWords): Words {
  return { hint: text, stands };
}

function asWish({ hint, stands, wished = hint }: Words): OwnWords {
  return { text: wished, stands };
}

function isSame(a: OwnWords, b: OwnWords): boolean {
  return a.text === b.text && a.stands === b.stands;
}
