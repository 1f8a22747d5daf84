// `feedback`: says in so many words what an answer was worth. It outranks the judge.
import { askEndpoint } from '../endpoint.js';
import type { CommandContext } from '../shell.js';
import { cliErrors } from '../errors.js';

export interface FeedbackWords {
  readonly score?: string;
  readonly comment?: string;
  readonly correction?: string;
}

export async function giveFeedback(
  context: CommandContext,
  turn: string,
  { score, comment, correction }: FeedbackWords,
): Promise<void> {
  if (score !== undefined && ![-1, 0, 1].includes(Number(score)))
    throw cliErrors.badArgument({ name: '--score', value: score, wanted: '-1, 0 or 1' });
  const body = { turn_id: turn, score: score === undefined ? undefined : Number(score), comment, correction };
  if (body.score === undefined && comment === undefined && correction === undefined) {
    throw cliErrors.badArgument({
      name: 'feedback',
      value: '',
      wanted: 'given: use --score, --comment or --correction',
    });
  }
  const answer = await askEndpoint(context, 'Feedback', 'POST', '/feedback', body);
  context.output.value(answer);
  context.output.line(`Stored for ${turn}. It counts unless the turn is in a batch already.`);
}
