// What was fitted for models too small to read, and comes with the judge: examples of the prompts, thresholds, weights
// of words. In: files of this package. Out: checked data. It never writes.
import { readFileSync } from 'node:fs';
import type { z } from 'zod';
import { sha256Hex } from '@backtalk/kit';
import { calibrationTable, digestText, type CalibrationTable } from '../domain/small-model/calibration.js';
import { createStandingSentences, type StandingSentences } from '../domain/hints/stands.js';
import { createIsBare, type IsBare } from '../domain/small-model/bare.js';
import { createReader, wordTable, wordWeights, type Reader } from '../domain/small-model/reader.js';
import { plantedTurn, type PlantedTurn } from '../domain/planted.js';
import { example, wordingsFrom, type Wordings } from '../domain/small-model/wordings.js';
import { judgeErrors } from '../errors.js';

const folder = new URL('../../labelled/', import.meta.url);

export interface ScoredPrompts {
  readonly wordings: Wordings;
  readonly digest: string;
}

/** The prompts of scored votes. */
export function scoredPrompts(): ScoredPrompts {
  const lines = read('examples.jsonl').split('\n');
  const examples = lines.filter((line) => line !== '').map((line) => parse(example, line, 'examples.jsonl'));
  const wordings = wordingsFrom(examples);
  return { wordings, digest: sha256Hex(digestText(wordings)) };
}

export function readCalibrationTable(): CalibrationTable {
  return parse(calibrationTable, read('thresholds.json'), 'thresholds.json');
}

/** Turns whose verdict is known, written for this alone. */
export function readPlanted(): PlantedTurn[] {
  const lines = read('planted.jsonl').split('\n');
  return lines.filter((line) => line !== '').map((line) => parse(plantedTurn, line, 'planted.jsonl'));
}

export function readReader(): Reader {
  return createReader(parse(wordTable, read('words.json'), 'words.json'), readCalibrationTable().withoutVotes);
}

export function readIsBare(): IsBare {
  return createIsBare(parse(wordWeights, read('bare.json'), 'bare.json'));
}

export function readStandingSentences(): StandingSentences {
  return createStandingSentences(parse(wordWeights, read('standing.json'), 'standing.json'));
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
