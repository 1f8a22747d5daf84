// Asks a model that reads how a new wish stands to earlier ones. In: the wishes, a random token; then what the model wrote. Out: chat
// messages; then a relation for each earlier wish, or nothing where the answer is not in form. Each wish stands between markers of its own,
// so that none can pass itself off as another, as the end of all, or as an instruction. Pure.
import { foreignPiece, foreignRule, type PromptMessage } from '@backtalk/dialects';
import { clip, wordingCharsMax } from '@backtalk/kit';
import { z } from 'zod';

import type { NewWish, WishRelation } from './wish-relation.js';

const task = [
  'A person told an assistant, at different times, how its answers should be. Say how the new wish stands to each earlier one; these are numbered.',
  'same: it asks for the same, in whatever words or language. An answer that follows one of the two follows the other as well.',
  'opposite: no answer can follow both, as where one wants "never" what the other wants "always", or another number, language or form of the same thing.',
  'Every other one is different: also where one of the two asks for more than the other, or for something else about the same matter. Where you are not sure, it is different.',
];
const form =
  'Think in a few sentences, then end with \\boxed{{"same": [], "opposite": []}}, with the numbers of the earlier wishes in the lists. Those that are different stand in neither.';

export function relationQuestion({ text, beside }: NewWish, token: string): PromptMessage[] {
  const earlier = beside.map((other, at) =>
    foreignPiece(token, `earlier wish ${at + 1}`, clip(other, wordingCharsMax)),
  );
  const pieces = [...earlier, foreignPiece(token, 'new wish', clip(text, wordingCharsMax))];
  return [
    { role: 'system', content: [...task, foreignRule(token), form].join('\n') },
    { role: 'user', content: pieces.join('\n\n') },
  ];
}

const numbers = z.array(z.int().min(1));
const lists = z.strictObject({ same: numbers, opposite: numbers });
const box = '\\boxed{';
const boxed = /^\\boxed\{\s*(\{[^{}]*\})\s*\}/u;

/** The last box counts, and no other. */
export function readRelations(answer: string, asked: number): WishRelation[] | undefined {
  const [, json = ''] = boxed.exec(answer.slice(Math.max(0, answer.lastIndexOf(box)))) ?? [];
  const read = lists.safeParse(jsonIn(json));
  if (!read.success) return undefined;
  const { same, opposite } = read.data;
  const isSound = [...same, ...opposite].every(
    (number) => number <= asked && !(same.includes(number) && opposite.includes(number)),
  );
  if (!isSound) return undefined;
  return Array.from({ length: asked }, (_, at) => {
    if (same.includes(at + 1)) return 'same';
    return opposite.includes(at + 1) ? 'opposite' : 'different';
  });
}

function jsonIn(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
