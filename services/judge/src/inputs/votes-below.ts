// Feedback may be given before the votes are cast: what it would be above them is stored in one more revision. Asked after either is
// stored, and again where either is delivered again, so that no order of the two and no crash between them changes what comes of them.
import type { Trace } from '@backtalk/kit';
import type { FeedbackGiven } from '@backtalk/proto/facts';
import { digestsIn, isComment, withVotesBelow, type Beside } from '../domain/feedback.js';
import type { NextState } from '../domain/next-state.js';
import { saidInComment } from '../domain/read-material.js';
import { verdictOf } from '../domain/verdict-value.js';
import type { JudgedPlace } from '../outputs/judgements.js';
import type { JudgeParts } from './parts.js';

export async function addVotesBelow(
  parts: JudgeParts,
  place: JudgedPlace,
  next: NextState | undefined,
  trace: Trace,
): Promise<void> {
  const { judgements, turns, events } = parts;
  if (!(await judgements.isRevised(place))) return;
  const highest = await judgements.highest(place);
  const given = await turns.feedback(place, highest === undefined ? [] : digestsIn(highest));
  const beside = await besideOf(parts, place, given, next);
  const stored = await judgements.append(
    place,
    { isThere: () => false, make: (_revision, _before, revisions) => withVotesBelow(revisions, given, beside) },
    trace,
  );
  if (stored === undefined) return;
  events.turnJudged('feedback', { verdict: verdictOf(stored.verdict), confidence: stored.confidence }, stored);
}

/** Question and answer are read only where there is a comment to be read beside them. */
export async function besideOf(
  { turns, reader, standing }: Pick<JudgeParts, 'turns' | 'reader' | 'standing'>,
  place: JudgedPlace,
  given: readonly FeedbackGiven[],
  next: NextState | undefined,
): Promise<Beside> {
  if (reader === undefined || !given.some((one) => isComment(one))) return { next, standing, read: () => 0 };
  const asked = await turns.asked(place);
  return {
    next,
    standing,
    read: (comment) => {
      const said = saidInComment(comment);
      return said === undefined ? 0 : reader.read({ ...asked, next: said }).verdict;
    },
  };
}
