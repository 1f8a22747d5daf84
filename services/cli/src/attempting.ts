// An attempt at a task: the model as an agent in an environment, until that gives a score. In: a task, the environment's program. Out: the
// session's name, the score, which versions answered.
import { z } from 'zod';
import { endpointClient } from './endpoint.js';
import { EnvironmentProgram } from './environment-program.js';
import { cliErrors } from './errors.js';
import type { CommandContext } from './shell.js';

export interface AttemptSettings {
  readonly environment: string;
  /** Answers in one attempt, at most. */
  readonly steps: number;
  readonly maxTokens: number;
  /** How long the environment may take for a line, milliseconds. */
  readonly wait: number;
  readonly train: boolean;
}

export interface AttemptAt {
  readonly task: unknown;
  /** Of attempts that are rewarded beside each other. */
  readonly group: string;
  /** From 1. */
  readonly attempt: number;
}

export interface Attempted {
  readonly session: string;
  readonly score: number;
  /** Answers. */
  readonly steps: number;
  /** That gave the last answer. */
  readonly version: string;
}

const completion = z.object({ choices: z.array(z.object({ message: z.looseObject({}) })).min(1) });

export async function attempt(
  context: Pick<CommandContext, 'connection' | 'apiKey'>,
  { task, group, attempt: number }: AttemptAt,
  { environment, steps, maxTokens, wait, train }: AttemptSettings,
  signal: AbortSignal,
): Promise<Attempted> {
  const { connection, apiKey } = context;
  const client = endpointClient(connection.endpoint, apiKey);
  const session = `${group}-${String(number)}`;
  const headers = {
    'X-Session-Id': session,
    'X-Turn-Type': 'environment',
    ...(train ? { 'X-Group-Id': group } : { 'X-Backtalk-Train': 'off' }),
  };
  const messages: object[] = [];
  let tools: readonly object[] | undefined;
  let version = '';
  const program = new EnvironmentProgram(environment, wait, signal);
  try {
    program.tell({ task, attempt: number });
    for (let answers = 0; ; answers += 1) {
      const heard = await program.hear();
      if ('score' in heard) {
        if (answers === 0) throw cliErrors.environmentBroke({ why: 'It gave a score before any answer.' });
        return { session, score: heard.score, steps: answers, version };
      }
      if (answers === steps)
        throw cliErrors.environmentBroke({ why: `It gave no score after ${String(steps)} answers (--steps).` });
      messages.push(...heard.messages);
      tools = heard.tools ?? tools;
      const body = { model: connection.policy, messages, max_completion_tokens: maxTokens, ...(tools && { tools }) };
      const { data, response } = await client.post('/chat/completions', { body, headers, signal }).withResponse();
      const [choice] = completion.parse(data).choices;
      version = response.headers.get('x-backtalk-weights') ?? '';
      messages.push(choice?.message ?? {});
      program.tell({ answer: choice?.message });
    }
  } finally {
    await program.stop();
  }
}
