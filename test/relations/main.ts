// `node test/dist/relations/main.js [--file PAIRS.jsonl] [--json]`: how well the trainer tells wishes apart. Lines of the file are
// `{"a": "…", "b": "…", "relation": "same", "kind": "…"}`; without one, the topics of this folder are measured.
import { repositoryRoot } from '@backtalk/kit/testing';
import { join } from 'node:path';
import { parseArgs } from 'node:util';

import { measureKinds, measureRelations, relations, type RelationReport } from './measure.js';
import { readPairs, readTopics } from './wish-pairs.js';

const { values: asked } = parseArgs({
  options: { file: { type: 'string' }, json: { type: 'boolean', default: false } },
});
const topics = join(repositoryRoot(), 'test/relations/topics.jsonl');
const pairs = asked.file === undefined ? readTopics(topics) : readPairs(asked.file);
const total = measureRelations(pairs);
const kinds = measureKinds(pairs);

process.stdout.write(asked.json ? `${JSON.stringify({ total, kinds })}\n` : table());

function table(): string {
  const rows = total.confusion.map((row, index) => [relations[index] ?? '', ...row].map(cell).join(''));
  const head = ['is \\ taken for', ...relations].map(cell).join('');
  return [head, ...rows, '', line('all', total), ...kinds.map((kind) => line(kind.kind, kind)), ''].join('\n');
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
