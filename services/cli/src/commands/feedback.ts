// `feedback`: says in so many words what an answer was worth. It outranks the judge.
import { z } from 'zod';
import type { CommandContext } from '../shell.js';
import { cliErrors } from '../errors.js';

export interface FeedbackWords {
  readonly score?: string;
  readonly comment?: string;
  readonly correction?: string;
}

const answerWithinMs = 10_000;
const refusal = z.object({ error: z.object({ message: z.string() }) });

export async function giveFeedback(
  { connection, output, apiKey }: CommandContext,
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
  const url = `${connection.endpoint}/feedback`;
  const response = await fetch(url, {
    method: 'POST',
    headers: { 'content-type': 'application/json', authorization: `Bearer ${apiKey}` },
    body: JSON.stringify(body),
    signal: AbortSignal.timeout(answerWithinMs),
  }).catch((error: unknown) => {
    throw cliErrors.unreachable({ what: 'The gateway', url }, error);
  });
  const answer: unknown = await response.json();
  if (!response.ok) {
    const why = refusal.safeParse(answer).data?.error.message ?? 'no reason was given';
    throw cliErrors.refused({ what: 'Feedback', status: response.status, why });
  }
  output.value(answer);
  output.line(`Stored for ${turn}. It counts unless the turn is in a batch already.`);
}
