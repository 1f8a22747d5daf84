// Wishes about form without a complaint, said after the laptop model's own answer to a question that has nothing to do with them: what a
// person says who wants the next answer otherwise. They come from the set of pairs of wishes, and nothing of the judge is fitted to them.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Material, Reader } from '@backtalk/judge';
import { repositoryRoot } from '@backtalk/kit/testing';
import { z } from 'zod';

const topic = z.object({ for: z.array(z.string()), against: z.array(z.string()), near: z.array(z.string()) });
const answered = z
  .object({ question: z.string(), drawn: z.array(z.string()).min(1) })
  .transform(({ question, drawn: [answer = ''] }) => ({ question, answer }));
/** Each wish is said after so many answers. */
const answersEach = 3;

export interface WishesReport {
  readonly n: number;
  readonly heard: number;
  readonly takenForSatisfied: number;
}

export function measureWishes(reader: Reader): WishesReport {
  const answers = linesOf('services/worker/src/backtalk_worker/laptop_model/answers.jsonl', answered);
  const wishes = linesOf('test/relations/topics.jsonl', topic).flatMap((one) => [
    ...one.for,
    ...one.against,
    ...one.near,
  ]);
  const verdicts = wishes.flatMap((wish, at) =>
    Array.from({ length: answersEach }, (_, turn) => {
      const before = answers[(7 * at + 131 * turn) % answers.length] ?? { question: '', answer: '' };
      return reader.read(saidAfter(wish, before)).verdict;
    }),
  );
  const share = (verdict: number) => verdicts.filter((one) => one === verdict).length / verdicts.length;
  return { n: verdicts.length, heard: share(-1), takenForSatisfied: share(1) };
}

function saidAfter(wish: string, before: z.infer<typeof answered>): Pick<Material, 'next' | 'question' | 'answer'> {
  return { ...before, next: { role: 'user', text: wish, userText: wish, toolResults: [] } };
}

function linesOf<T>(file: string, shape: z.ZodType<T>): T[] {
  const lines = readFileSync(join(repositoryRoot(), file), 'utf8').trim().split('\n');
  return lines.map((line) => shape.parse(JSON.parse(line)));
}
