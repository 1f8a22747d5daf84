// The labelled next states: one row each, with what it says of the answer before it.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Material, NextState } from '@backtalk/judge';
import { personWords } from '@backtalk/kit';
import { repositoryRoot } from '@backtalk/kit/testing';
import { z } from 'zod';

const labelledItem = z.object({
  role: z.enum(['user', 'tool']),
  label: z.union([z.literal(-1), z.literal(0), z.literal(1)]),
  next: z.string(),
  id: z.string(),
  /** Items of one family share a way of saying it, and stand in one part together. */
  family: z.string(),
  /** All is learned from but what is kept for the test. */
  split: z.enum(['dev', 'calibration', 'test']),
  tool: z.string().optional(),
  tags: z.array(z.string()),
  question: z.string(),
  answer: z.string(),
  /** The same next state without the injected instructions. */
  clean: z.string().optional(),
});
export type LabelledItem = z.infer<typeof labelledItem>;

const files = ['test/judge/labelled/next-states.jsonl', 'test/judge/labelled/replies.jsonl'];

export function readItems(): LabelledItem[] {
  const lines = files.flatMap((file) => readFileSync(join(repositoryRoot(), file), 'utf8').split('\n'));
  return lines.filter((line) => line !== '').map((line) => labelledItem.parse(JSON.parse(line)));
}

/** An item as the judge would meet it. */
export function materialOfItem(item: LabelledItem, text: string = item.next): Material {
  return {
    place: { turn: item.id, tenant: 'labelled', user: 'labelled', policy: 'labelled', session: 'labelled' },
    conversation: [{ role: 'user', text: item.question }],
    question: item.question,
    answer: item.answer,
    thoughts: '',
    version: '',
    next: nextOf(item, text),
  };
}

function nextOf({ role, tool = '' }: LabelledItem, text: string): NextState {
  // Agents put blocks of their own around it.
  const words = personWords(text);
  if (role === 'user') return { role, text: words, userText: words, toolResults: [] };
  return { role, text, userText: '', toolResults: [{ name: tool, text, isError: false }] };
}

/** In the order of first appearance. */
export function grouped<T>(items: readonly T[], keyOf: (item: T) => string): Map<string, T[]> {
  const groups = new Map<string, T[]>();
  for (const item of items) {
    const group = groups.get(keyOf(item));
    if (group === undefined) groups.set(keyOf(item), [item]);
    else group.push(item);
  }
  return groups;
}
