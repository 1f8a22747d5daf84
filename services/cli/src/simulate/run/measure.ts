// Asks the held-out questions of one version, with training off, and has the answers scored. In: a version's name. Out: one
// row of the table. Ways to ask: as the question stands, or with the hint shown (the ceiling of distillation).
import type OpenAI from 'openai';
import { ask, type Answer } from '../../endpoint.js';
import type { HeldOutAnswer } from '../scorer/scores.js';
import { inParallel } from './in-parallel.js';

export interface MeasureOptions {
  readonly client: OpenAI;
  readonly questions: readonly string[];
  readonly samples: number;
  readonly maxTokens: number;
  readonly temperature: number;
  readonly parallel: number;
  readonly onAnswer?: (done: number, total: number) => void;
}

export interface MeasuredAnswers {
  readonly scored: readonly HeldOutAnswer[];
  readonly answers: readonly Answer[];
}

/** Questions in order, `samples` answers each; the same order for every version. */
export async function askHeldOut(options: MeasureOptions, model: string, hint?: string): Promise<MeasuredAnswers> {
  const { client, questions, samples, maxTokens, temperature, parallel } = options;
  const asked = Array.from({ length: samples }, () => questions).flat();
  let done = 0;
  const answers = await inParallel(asked, parallel, async (question) => {
    const content = hint === undefined ? question : `${question}\n\n${hint}`;
    const answer = await ask(client, [{ role: 'user', content }], { model, maxTokens, temperature, train: false });
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
