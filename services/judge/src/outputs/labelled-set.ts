// What was fitted and comes with the judge: weights of words, and turns whose verdict is known. In: files of this package. Out:
// checked data. It never writes.
import { readFileSync } from 'node:fs';
import type { z } from 'zod';
import { createStandingSentences, type StandingSentences } from '../domain/hints/stands.js';
import { plantedTurn, type PlantedTurn } from '../domain/planted.js';
import { createIsBare, type IsBare } from '../domain/words/bare.js';
import { createReader, roleWeights, wordTable, wordWeights, type Reader } from '../domain/words/reader.js';
import { judgeErrors } from '../errors.js';

const folder = new URL('../../labelled/', import.meta.url);

/** Turns whose verdict is known, written for this alone. */
export function readPlanted(): PlantedTurn[] {
  const lines = read('planted.jsonl').split('\n');
  return lines.filter((line) => line !== '').map((line) => parse(plantedTurn, line, 'planted.jsonl'));
}

export function readReader(): Reader {
  const weights = parse(roleWeights, read('weighing.json'), 'weighing.json');
  return createReader(parse(wordTable, read('words.json'), 'words.json'), weights);
}

export function readIsBare(): IsBare {
  return createIsBare(parse(wordWeights, read('bare.json'), 'bare.json'));
}

export function readStandingSentences(): StandingSentences {
  return createStandingSentences(parse(wordWeights, read('standing.json'), 'standing.json'), readIsBare());
}

function read(name: string): string {
  try {
    return readFileSync(new URL(name, folder), 'utf8');
  } catch (error) {
    throw judgeErrors.labelledSetBroken({ file: `labelled/${name}`, reason: 'it cannot be read' }, error);
  }
}

function parse<T>(schema: z.ZodType<T>, text: string, name: string): T {
  try {
    return schema.parse(JSON.parse(text));
  } catch (error) {
    throw judgeErrors.labelledSetBroken({ file: `labelled/${name}`, reason: 'it has another shape' }, error);
  }
}
