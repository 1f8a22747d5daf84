// Thresholds are fitted for one model and one set of prompts, and hold for no other. In: the committed table. Out: the
// entry for a model and a digest, or nothing. Pure.
import { z } from 'zod';
import { roleWeights } from './reader.js';
import type { Wordings } from './wordings.js';

const bias = z.object({ satisfied: z.number(), correction: z.number() });

const calibrationEntry = z.object({
  model: z.string(),
  promptDigest: z.string(),
  low: z.number(),
  high: z.number(),
  /** By id of the wording. */
  wordings: z.record(z.string(), bias),
  /** Labelled next states they were fitted on. */
  fittedOn: z.number(),
  /** What votes and words count against each other; without them words alone are read. */
  weights: roleWeights.optional(),
});
export type CalibrationEntry = z.infer<typeof calibrationEntry>;

export const calibrationTable = z.object({
  entries: z.array(calibrationEntry),
  /** For judging without votes; they belong to no model. */
  withoutVotes: roleWeights,
});
export type CalibrationTable = z.infer<typeof calibrationTable>;

export function findCalibration(
  table: Pick<CalibrationTable, 'entries'>,
  model: string,
  promptDigest: string,
): CalibrationEntry | undefined {
  return table.entries.find((entry) => entry.model === model && entry.promptDigest === promptDigest);
}

/** What the digest of a set of wordings is taken over. */
export function digestText({ user, tool }: Wordings): string {
  return JSON.stringify(
    [...user, ...tool].map(({ id, lists }) => [id, lists.satisfied, lists.unrelated, lists.correction]),
  );
}
