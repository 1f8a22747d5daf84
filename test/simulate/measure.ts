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

export interface Drift {
  /** Nats an answer, cut as answers are. */
  readonly nats: number;
  /** So many answers it rests on. */
  readonly answers: number;
}

/**
 * KL(π ∥ π_base): the mean of log π(y) − log π_base(y) over answers sampled from π, one to each question. Engines score at
 * temperature 1, so these are sampled at 1: scored as they were not sampled, they would give no KL.
 *
 * @param version π
 * @returns undefined where the engine gave the ids of no answer
 */
export async function klToBase(
  engine: EngineClient,
  base: string,
  asking: MeasureOptions,
  version: string,
): Promise<Drift | undefined> {
  const { answers } = await askHeldOut({ ...asking, samples: 1, temperature: 1 }, version);
  const usable = answers.filter(({ promptIds, answerIds }) => promptIds.length > 0 && answerIds.length > 0);
  if (usable.length === 0) return undefined;
  const under = (model: string) => engine.score(usable, { model, deadlineMs: scoreWithinMs, signal: asking.signal });
  const own = await under(version);
  const other = await under(base);
  const nats = sum(own.map((logprobs, index) => sum(logprobs) - sum(other[index] ?? []))) / usable.length;
  return { nats, answers: usable.length };
}
