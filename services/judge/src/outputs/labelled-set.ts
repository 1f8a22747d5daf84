// The labelled next states and the fitted thresholds that come with the judge. In: files of this package. Out: checked
// data. It never writes, and never mixes the parts of the split.
import { readFileSync } from 'node:fs';
import type { z } from 'zod';
import { sha256Hex } from '@backtalk/kit';
import { labelledItem, type LabelledItem } from '../domain/labelled-item.js';
import { calibrationTable, digestText, type CalibrationTable } from '../domain/scored/calibration.js';
import { createReader, type Reader } from '../domain/reading/reader.js';
import { wordingsFrom, type Wordings } from '../domain/scored/wordings.js';
import { judgeErrors } from '../errors.js';

const folder = new URL('../../labelled/', import.meta.url);
export const itemsFile = 'labelled/next-states.jsonl';
export const thresholdsFile = 'labelled/thresholds.json';

export function readLabelledItems(): LabelledItem[] {
  const lines = read('next-states.jsonl').split('\n');
  return lines.filter((line) => line !== '').map((line) => parse(labelledItem, line, itemsFile));
}

export function readCalibrationTable(): CalibrationTable {
  return parse(calibrationTable, read('thresholds.json'), thresholdsFile);
}

export interface ScoredPrompts {
  readonly wordings: Wordings;
  readonly digest: string;
}

/** The prompts of scored votes: examples come from their own part of the labelled set. */
export function scoredPrompts(items: readonly LabelledItem[]): ScoredPrompts {
  const wordings = wordingsFrom(items.filter(({ split }) => split === 'fewshot'));
  return { wordings, digest: sha256Hex(digestText(wordings)) };
}

/** Learns from all labelled next states but those that are kept for the test. */
export function readReader(items: readonly LabelledItem[] = readLabelledItems()): Reader {
  const learnedFrom = items.filter(({ split }) => split !== 'test');
  return createReader(learnedFrom, readCalibrationTable().withoutVotes);
}

function read(name: string): string {
  try {
    return readFileSync(new URL(name, folder), 'utf8');
  } catch (error) {
    throw judgeErrors.labelledSetBroken({ file: `labelled/${name}`, reason: 'it cannot be read' }, error);
  }
}

function parse<T>(schema: z.ZodType<T>, text: string, file: string): T {
  try {
    return schema.parse(JSON.parse(text));
  } catch (error) {
    throw judgeErrors.labelledSetBroken({ file, reason: 'a line has another shape' }, error);
  }
}
