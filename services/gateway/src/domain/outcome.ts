// How an attempt at a task went, by the word of the environment that checked it. In: a parsed JSON body. Out: a score and how many
// attempts the group has, or a refusal that names the parameter. Pure.
import type { Outcome } from '@backtalk/proto/facts';
import { z } from 'zod';
import { readAs } from './read-as.js';

export interface GivenOutcome {
  readonly outcome: Outcome;
  /** Whose session it is, where the key speaks for several people. */
  readonly user: string | undefined;
}

const attemptsMax = 1_024;
const attemptsWrong = `it must be a whole number from 1 to ${attemptsMax}`;
const scoreWrong = 'it must be a number from -1 to 1';

const schema = z.object({
  score: z.number(scoreWrong).min(-1, scoreWrong).max(1, scoreWrong),
  attempts: z.int(attemptsWrong).min(1, attemptsWrong).max(attemptsMax, attemptsWrong).nullish(),
  user: z.string('it must be a string').nullish(),
});

export function readOutcome(body: unknown): GivenOutcome {
  const { score, attempts, user } = readAs(schema, body).value;
  return { outcome: { score, attempts: attempts ?? 0, turns: 0 }, user: user ?? undefined };
}
