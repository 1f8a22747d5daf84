// What one version answers to the held-out questions, with training off, and how far it is from the base. A question is asked
// as it stands, or with the hint shown (the ceiling of distillation).
import type { EngineClient } from '@backtalk/dialects';
import type OpenAI from 'openai';
import { ask, type Answer } from './ask.js';
import { inParallel } from './in-parallel.js';
import type { HeldOutAnswer } from './scorer/scores.js';

const scoreWithinMs = 300_000;

export interface MeasureOptions {
  readonly client: OpenAI;
  readonly questions: readonly string[];
  readonly samples: number;
  readonly maxTokens: number;
  readonly temperature: number;
  readonly parallel: number;
  /** Shown what is being taught, as an endpoint does that is asked to. */
  readonly lessons?: boolean;
  readonly signal?: AbortSignal;
  readonly onAnswer?: (done: number, total: number) => void;
}

export interface MeasuredAnswers {
  readonly scored: readonly HeldOutAnswer[];
  readonly answers: readonly Answer[];
}

/** Questions in order, `samples` answers each; the same order for every version. */
export async function askHeldOut(options: MeasureOptions, model: string, hint?: string): Promise<MeasuredAnswers> {
  const { client, questions, samples, maxTokens, temperature, parallel, lessons = false } = options;
  const asked = Array.from({ length: samples }, () => questions).flat();
  let done = 0;
  const answers = await inParallel(asked, parallel, async (question) => {
    const content = hint === undefined ? question : `${question}\n\n${hint}`;
    const own = { model, maxTokens, temperature, train: false, lessons, signal: options.signal };
    const answer = await ask(client, [{ role: 'user', content }], own);
    done += 1;
    options.onAnswer?.(done, asked.length);
    return answer;
  });
  const scored = asked.map((question, index) => ({
    question,
    answer: answers[index]?.text ?? '',
    ended: answers[index]?.ended ?? false,
  }));
  return { scored, answers };
}

function sum(values: readonly number[]): number {
  return values.reduce((total, value) => total + value, 0);
}

/**
 * Mean of log π(y) − log π_base(y) over answers sampled from π: nats an answer, at temperature 1.
 *
 * @param version the version that gave the answers
 */
export async function klToBase(
  engine: EngineClient,
  version: string,
  base: string,
  answers: readonly Answer[],
  signal?: AbortSignal,
): Promise<number> {
  const usable = answers.filter(({ promptIds, answerIds }) => promptIds.length > 0 && answerIds.length > 0);
  const under = (model: string) => engine.score(usable, { model, deadlineMs: scoreWithinMs, signal });
  const own = await under(version);
  const other = await under(base);
  return sum(own.map((logprobs, index) => sum(logprobs) - sum(other[index] ?? []))) / Math.max(1, usable.length);
}
