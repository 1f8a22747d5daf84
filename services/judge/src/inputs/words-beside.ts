// Feedback without words stands above votes that come after it: what was said beside it is added in one more revision. Asked after
// either is stored, and again where either is delivered again, so that no order of the two and no crash between them loses it.
import type { Trace } from '@backtalk/kit';
import { withWordsBeside } from '../domain/feedback.js';
import type { NextState } from '../domain/next-state.js';
import { verdictOf } from '../domain/verdict-value.js';
import type { JudgedPlace } from '../outputs/judgements.js';
import type { JudgeParts } from './parts.js';

export async function addWordsBeside(
  { judgements, events }: Pick<JudgeParts, 'judgements' | 'events'>,
  place: JudgedPlace,
  next: NextState | undefined,
  trace: Trace,
): Promise<void> {
  if (!(await judgements.isRevised(place))) return;
  const stored = await judgements.append(
    place,
    { isThere: () => false, make: (_revision, _before, revisions) => withWordsBeside(revisions, next) },
    trace,
  );
  if (stored === undefined) return;
  events.turnJudged('feedback', { verdict: verdictOf(stored.verdict), confidence: stored.confidence }, stored.hint);
}
