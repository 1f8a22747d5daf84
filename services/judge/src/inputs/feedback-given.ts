// Explicit feedback becomes a revision of the judgement, with the words that were said beside it; a score outranks the votes.
import type { StoredFact } from '@backtalk/kit';
import { holdsFeedback, isSaidEnough, judgeFeedback } from '../domain/feedback.js';
import type { DropReason } from '../domain/hints/hindsight.js';
import { nextStateOf } from '../domain/read-material.js';
import { verdictOf } from '../domain/verdict-value.js';
import type { JudgeParts } from './parts.js';
import { isJudgeable } from './turn-continued.js';
import { addVotesBelow, besideOf } from './votes-below.js';

export async function feedbackGiven(parts: JudgeParts, { message, trace }: StoredFact<'feedbackGiven'>): Promise<void> {
  const { turns, judgements, events } = parts;
  if (message.consent?.train === false) return events.turnSkipped('giver_opted_out');
  // Before anything else is read: who says too much of a turn says it often.
  if (isSaidEnough(message, await judgements.revisions(message))) return events.turnSkipped('said_enough');
  const [opened, completed, continued] = await Promise.all([
    turns.opened(message),
    turns.completed(message),
    turns.continued(message),
  ]);
  const why = await turns.withheld(opened, continued);
  if (why !== undefined) return events.turnSkipped(why);
  // Words that came with a "no" of their own are not learned from.
  const isHeard = continued !== undefined && isJudgeable(continued) === undefined;
  const next = isHeard ? nextStateOf(continued) : undefined;
  const beside = await besideOf(parts, message, [message], next);
  let dropped: readonly DropReason[] = [];
  const stored = await judgements.append(
    message,
    {
      isThere: (judged) => holdsFeedback(judged, message.digest),
      make: (revision, before) => {
        const session = before?.session ?? continued?.session ?? completed.provisionalSession;
        const made = judgeFeedback({ ...beside, feedback: message, before, session, revision });
        dropped = made.dropped;
        return made.message;
      },
    },
    trace,
  );
  if (stored === undefined) {
    events.turnSkipped('judged_before');
  } else {
    events.hintsDropped(dropped);
    events.turnJudged('feedback', { verdict: verdictOf(stored.verdict), confidence: 1 }, stored);
  }
  await addVotesBelow(parts, message, next, trace);
}
