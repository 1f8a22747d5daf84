// Explicit feedback becomes a revision of the judgement that outranks the votes.
import type { StoredFact } from '@backtalk/kit';
import { holdsFeedback, judgeFeedback } from '../domain/feedback.js';
import { verdictOf } from '../domain/verdict-value.js';
import type { JudgeParts } from './parts.js';

export async function feedbackGiven(parts: JudgeParts, { message, trace }: StoredFact<'feedbackGiven'>): Promise<void> {
  const { turns, judgements, events, config } = parts;
  const [opened, completed, continued] = await Promise.all([
    turns.opened(message),
    turns.completed(message),
    turns.continued(message),
  ]);
  if (message.consent?.train === false) return events.turnSkipped('giver_opted_out');
  const why = await turns.withheld(opened, continued);
  if (why !== undefined) return events.turnSkipped(why);
  const stored = await judgements.append(
    message,
    {
      isThere: (judged) => holdsFeedback(judged, message.digest),
      make: (revision, before) =>
        judgeFeedback({
          feedback: message,
          answer: completed.text,
          before,
          session: before?.session ?? continued?.session ?? completed.provisionalSession,
          revision,
          choice: config.hintChoice,
          isSmallModel: config.backend === 'scored',
        }),
    },
    trace,
  );
  if (stored === undefined) return events.turnSkipped('judged_before');
  events.turnJudged('feedback', { verdict: verdictOf(stored.verdict), confidence: 1 }, stored.hint);
}
