// The labelled sources: each is of one hand, or of one hand at another time. In: the files under `labelled`. Out: turns with the name
// of their source, never those of the part `test`. What is learned from some of them is measured on another.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { repositoryRoot } from '@backtalk/kit/testing';
import { materialOfItem, type LabelledItem } from './items.js';
import { readLabelledTurns, type LabelledTurn } from './labelled-lines.js';

const files = [
  'conversations',
  'engineers',
  'everyday',
  'office',
  'form',
  'school',
  'agents',
  'trades',
  'home',
  'desks',
  'phones',
  'machines',
] as const;

export interface Sample extends LabelledTurn {
  readonly source: string;
}

export function readSamples(items: readonly LabelledItem[]): Sample[] {
  const learned = items.filter(({ split }) => split !== 'test').map((item, at) => sampleOf(item, at + 1));
  const turns = files.flatMap((source) => {
    const text = readFileSync(join(repositoryRoot(), 'test/judge/labelled', `${source}.jsonl`), 'utf8');
    return readLabelledTurns(text).map((turn) => ({ ...turn, source }));
  });
  return [...learned, ...turns];
}

function sampleOf(item: LabelledItem, number: number): Sample {
  return {
    number,
    material: materialOfItem(item),
    clean: item.clean === undefined ? undefined : materialOfItem(item, item.clean),
    label: item.label,
    kind: item.tags.includes('injection') ? 'injection' : item.role,
    hint: '',
    source: item.id.startsWith('reply-') ? 'replies' : 'next-states',
  };
}
