// Labelled pairs of wishes: from a file of them, or from `topics.jsonl`, where each topic lists wordings of one wish, what cannot hold beside it,
// and what is near it but another wish.
import { readFileSync } from 'node:fs';
import { z } from 'zod';

import { relations, type LabelledPair } from './measure.js';

const pairShape = z.object({
  a: z.string(),
  b: z.string(),
  relation: z.enum(relations),
  kind: z.string().default(''),
});
const topicShape = z.object({
  topic: z.string(),
  for: z.array(z.string()),
  against: z.array(z.string()),
  near: z.array(z.string()),
});

export function readPairs(file: string): LabelledPair[] {
  return linesOf(file).map((line) => pairShape.parse(line));
}

/** @param file JSON lines, one topic each */
export function readTopics(file: string): LabelledPair[] {
  return linesOf(file).flatMap((line) => pairsOf(topicShape.parse(line)));
}

function linesOf(file: string): unknown[] {
  const lines = readFileSync(file, 'utf8').trim().split('\n');
  return lines.map((line) => JSON.parse(line) as unknown);
}

function pairsOf(topic: z.infer<typeof topicShape>): LabelledPair[] {
  const labelled = (
    relation: LabelledPair['relation'],
    pairs: readonly (readonly [string, string])[],
  ): LabelledPair[] => pairs.map(([a, b]) => ({ a, b, relation, kind: topic.topic }));
  return [
    ...labelled('same', within(topic.for)),
    ...labelled('opposite', across(topic.for, topic.against)),
    ...labelled('different', [...across([...topic.for, ...topic.against], topic.near), ...within(topic.near)]),
  ];
}

function within(wishes: readonly string[]): [string, string][] {
  return wishes.flatMap((a, index) => across([a], wishes.slice(index + 1)));
}

function across(wishes: readonly string[], others: readonly string[]): [string, string][] {
  return wishes.flatMap((a) => others.map((b): [string, string] => [a, b]));
}
