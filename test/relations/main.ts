// `node test/dist/relations/main.js [--file PAIRS.jsonl] [--json] [--judge-url URL --judge-model NAME]`: how well the trainer tells wishes apart, by
// words, or with a model that reads (its key: BACKTALK_JUDGE_KEY). Lines of the file are
// `{"a": "…", "b": "…", "relation": "same", "kind": "…"}`; without one, the topics of this folder are measured.
import { createEngineClient } from '@backtalk/dialects';
import { readConfig, setting } from '@backtalk/kit';
import { repositoryRoot } from '@backtalk/kit/testing';
import { relateByWords } from '@backtalk/trainer/wishes';
import { join } from 'node:path';
import { parseArgs } from 'node:util';

import { askAbout } from './asked.js';
import { measureKinds, measureRelations, relations, type RelationReport } from './measure.js';
import { readPairs, readTopics } from './wish-pairs.js';

const { values: asked } = parseArgs({
  options: {
    file: { type: 'string' },
    json: { type: 'boolean', default: false },
    'judge-url': { type: 'string' },
    'judge-model': { type: 'string', default: '' },
  },
});
const { judgeKey: apiKey } = readConfig({
  judgeKey: setting.string('BACKTALK_JUDGE_KEY', {
    description: 'Key of the model; empty where it asks for none.',
    default: '',
    secret: true,
  }),
});
const topics = join(repositoryRoot(), 'test/relations/topics.jsonl');
const pairs = asked.file === undefined ? readTopics(topics) : readPairs(asked.file);
const { relate, outcomes } = await related();
const total = measureRelations(pairs, relate);
const kinds = measureKinds(pairs, relate);

process.stdout.write(asked.json ? `${JSON.stringify({ total, kinds, outcomes })}\n` : table());

async function related() {
  const { 'judge-url': url, 'judge-model': model } = asked;
  if (url === undefined) return { relate: relateByWords, outcomes: {} };
  const client = createEngineClient({ url, dialect: 'openai', apiKey });
  try {
    return await askAbout(pairs, { client, model });
  } finally {
    await client.close();
  }
}

function table(): string {
  const rows = total.confusion.map((row, index) => [relations[index] ?? '', ...row].map(cell).join(''));
  const head = ['is \\ taken for', ...relations].map(cell).join('');
  const requests = Object.entries(outcomes).map(([outcome, count]) => `${cell(`requests ${outcome}`)}${count}`);
  const lines = [line('all', total), ...kinds.map((kind) => line(kind.kind, kind))];
  return [head, ...rows, '', ...requests, ...lines, ''].join('\n');
}

function line(name: string, report: RelationReport): string {
  const { pairs: count, falseMerges, oppositesMerged, sameFound, oppositesFound } = report;
  const merges = `false merges ${percent(falseMerges)}, opposites merged ${oppositesMerged}`;
  return `${cell(name)}${count} pairs: ${merges}, same found ${percent(sameFound)}, opposites found ${percent(oppositesFound)}`;
}

function cell(text: string | number): string {
  return String(text).padEnd(20);
}

function percent(value: number): string {
  return `${(100 * value).toFixed(1)} %`;
}
