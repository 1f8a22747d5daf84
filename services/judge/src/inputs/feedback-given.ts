// Somebody said in so many words what an answer was worth: a revision that outranks the votes.
import type { StoredFact } from '@backtalk/kit';
import { holdsFeedback, judgeFeedback } from '../domain/feedback.js';
import { verdictOf } from '../domain/verdict-value.js';
import type { JudgeParts } from './parts.js';

export async function feedbackGiven(parts: JudgeParts, { message, trace }: StoredFact<'feedbackGiven'>): Promise<void> {
  const { log, judgements, events, config } = parts;
  const [opened, completed, continued] = await Promise.all([
    log.opened(message),
    log.completed(message),
    log.continued(message),
  ]);
  if (opened.consent?.train !== true) return events.turnSkipped('opted_out');
  if (await log.isErased(message)) return events.turnSkipped('erased');
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
        }),
    },
    trace,
  );
  if (stored === undefined) return events.turnSkipped('judged_before');
  events.turnJudged('feedback', { verdict: verdictOf(stored.verdict), confidence: 1 }, stored.hint);
}
