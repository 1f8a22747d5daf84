// Explicit feedback as a judgement. In: what a person said an answer was worth, and the judgement before, if any.
// Out: a later revision that outranks it. Pure.
import { TurnJudged, TurnJudged_Source, type FeedbackGiven } from '@backtalk/proto/facts';
import { chooseHint, isAccepted, type HintChoice } from './hints/choose.js';
import { extractHint } from './small-model/hint-grammar.js';
import { verdictOf, type Verdict } from './verdict-value.js';

export interface FeedbackParts {
  readonly feedback: FeedbackGiven;
  readonly answer: string;
  readonly before: TurnJudged | undefined;
  readonly session: string;
  readonly revision: number;
  readonly choice: HintChoice;
  /** The model that votes is too small to write a hint: a grammar finds the instruction in the person's words. */
  readonly isSmallModel: boolean;
}

/** A longer comment is an essay, not an instruction. */
const wholeCommentMax = 200;

export function judgeFeedback(parts: FeedbackParts): TurnJudged {
  const { feedback, answer, before, session, revision, choice, isSmallModel } = parts;
  const { turn, tenant, user, policy, giver, digest, hasScore, score, comment, correction } = feedback;
  // Without a score, a correction says that the answer was wrong; a comment alone leaves the verdict as it was.
  const unscored: Verdict = correction === '' ? verdictOf(before?.verdict ?? 0) : -1;
  const verdict = hasScore ? verdictOf(score) : unscored;
  const quoted = isSmallModel ? [extractHint(comment), extractHint(correction)].filter((one) => one !== '') : [];
  const found = chooseHint(quoted, answer, choice);
  // A complaint that gives no instruction is still a person's explicit word on how to answer.
  const isComplaint = verdict === -1 || (verdict === 0 && hasScore);
  const whole = comment.replaceAll(/\s+/g, ' ').trim();
  const isWholeHint = isComplaint && whole.length <= wholeCommentMax && isAccepted(whole, answer);
  const hint = found === '' && isWholeHint ? whole : found;
  return TurnJudged.fromPartial({
    ...(before ?? {}),
    turn,
    tenant,
    user,
    policy,
    session,
    revision,
    verdict,
    confidence: 1,
    hint: hint === '' && verdict === before?.verdict ? before.hint : hint,
    evidence: [...(before?.evidence ?? []), { name: 'feedback', verdict, detail: digest }],
    source: TurnJudged_Source.SOURCE_FEEDBACK,
    giver: giver === user ? '' : giver,
    advantage: 0,
    hasAdvantage: false,
  });
}

/** Whether a judgement already holds this feedback. */
export function holdsFeedback(judged: TurnJudged, digest: string): boolean {
  return judged.source === TurnJudged_Source.SOURCE_FEEDBACK && judged.evidence.at(-1)?.detail === digest;
}
