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
  const { feedback, before, session, revision } = parts;
  const { turn, tenant, user, policy, digest } = feedback;
  const verdict = feedbackVerdict(feedback, before);
  const hint = feedbackHint(parts, verdict);
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
    advantage: 0,
    hasAdvantage: false,
  });
}

/** Whether a judgement already holds this feedback. */
export function holdsFeedback(judged: TurnJudged, digest: string): boolean {
  return judged.source === TurnJudged_Source.SOURCE_FEEDBACK && judged.evidence.at(-1)?.detail === digest;
}

/** Without a score, a correction says that the answer was wrong; a comment alone leaves the verdict as it was. */
function feedbackVerdict({ hasScore, score, correction }: FeedbackGiven, before: TurnJudged | undefined): Verdict {
  if (hasScore) return verdictOf(score);
  if (correction !== '') return -1;
  return verdictOf(before?.verdict ?? 0);
}

function feedbackHint({ feedback, answer, choice, isSmallModel }: FeedbackParts, verdict: Verdict): string {
  const { hasScore, comment, correction } = feedback;
  const quoted = isSmallModel ? [extractHint(comment), extractHint(correction)].filter((hint) => hint !== '') : [];
  const found = chooseHint(quoted, answer, choice);
  const isComplaint = verdict === -1 || (verdict === 0 && hasScore);
  if (found !== '' || !isComplaint) return found;
  // A complaint that gives no instruction is still a person's explicit word on how to answer.
  const whole = comment.replaceAll(/\s+/g, ' ').trim();
  return whole.length <= wholeCommentMax && isAccepted(whole, answer) ? whole : '';
}
