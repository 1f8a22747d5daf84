// An attempt at a task: the model as an agent in an environment, until that gives a score. In: a task, the environment's program. Out: the
// session's name, the score, which version answered.
import { systemClock } from '@backtalk/kit';
import { patiently } from './endpoint.js';
import { answerOf } from './official-client.js';
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
  /** One JSON value, as it stands in the file. */
  readonly task: string;
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
  /** When that came, milliseconds since 1970: the session is silent since. */
  readonly answeredMs: number;
}

export async function attempt(
  context: Pick<CommandContext, 'connection' | 'apiKey'>,
  { task, group, attempt: number }: AttemptAt,
  { environment, steps, maxTokens, wait, train }: AttemptSettings,
  signal: AbortSignal,
): Promise<Attempted> {
  const session = `${group}-${String(number)}`;
  const headers = {
    'X-Session-Id': session,
    'X-Turn-Type': 'environment',
    ...(train ? { 'X-Group-Id': group } : { 'X-Backtalk-Train': 'off' }),
  };
  const messages: object[] = [];
  let tools: readonly object[] | undefined;
  let [version, answeredMs, isOver] = ['', 0, false];
  // The client of the endpoint keeps a listener of each request.
  const own = new AbortController();
  const end = () => {
    own.abort();
  };
  const program = new EnvironmentProgram(environment, wait, own.signal);
  signal.addEventListener('abort', end);
  if (signal.aborted) end();
  try {
    program.tell(`{"task":${task},"attempt":${String(number)}}`);
    for (let answers = 0; ; answers += 1) {
      const heard = await program.hear();
      if ('score' in heard) {
        if (answers === 0) throw cliErrors.environmentBroke({ why: 'It gave a score before any answer.' });
        isOver = true;
        return { session, score: heard.score, steps: answers, version, answeredMs };
      }
      if (answers === steps)
        throw cliErrors.environmentBroke({ why: `It gave no score after ${String(steps)} answers (--steps).` });
      messages.push(...heard.messages);
      tools = heard.tools ?? tools;
      const asked = { model: context.connection.policy, messages, max_completion_tokens: maxTokens };
      const body = tools === undefined ? asked : { ...asked, tools };
      const answer = await patiently(() => answerOf(context, { body, headers }, own.signal), own.signal);
      [version, answeredMs] = [answer.version, systemClock.now()];
      messages.push(answer.message);
      program.tell(JSON.stringify({ answer: answer.message }));
    }
  } finally {
    signal.removeEventListener('abort', end);
    await program.stop(isOver);
  }
}
