// Fits everything that the judge has for a model too small to read. In: labelled next states, never those of the part
// `test`; an engine that casts votes, where votes are to be fitted. Out: the contents of the judge's files.
import {
  featuresOf,
  meanLikelihoods,
  ScoredVoter,
  wordLikelihoods,
  type CalibrationEntry,
  type CalibrationTable,
  type JudgeEngine,
  type Likelihoods,
  type RoleWeights,
  type ScoredPrompts,
  type WordTable,
} from '@backtalk/judge';
import { fitCalibration } from './fit-thresholds.js';
import { fitWeighing } from './fit-weighing.js';
import { fitWords } from './fit-words.js';
import { grouped, materialOfItem, type LabelledItem } from './items.js';
import { measureLikelihoods } from './measure.js';
import type { Sample } from './sources.js';

/** As many as the judge has cast by default. */
export const votesCast = 3;
const voteWaitMs = 120_000;

export type OnProgress = (what: string, done: number, all: number) => void;

/** Of each source, what words say of it that were learned from all others. */
export type UnseenWords = ReadonlyMap<Sample, Likelihoods>;

export function readUnseen(samples: readonly Sample[]): { words: UnseenWords; tables: ReadonlyMap<string, WordTable> } {
  const words = new Map<Sample, Likelihoods>();
  const tables = new Map<string, WordTable>();
  for (const [source, own] of grouped(samples, (sample) => sample.source)) {
    const table = fitWords(samples.filter((sample) => sample.source !== source));
    tables.set(source, table);
    for (const sample of own) {
      if (sample.material === undefined) continue;
      words.set(sample, wordLikelihoods(table[roleOf(sample)], featuresOf(sample.material)));
    }
  }
  return { words, tables };
}

/** With words that were learned from other sources only; with votes, on those samples that have them. */
export function fitWeights(words: UnseenWords, votes?: ReadonlyMap<string, Likelihoods>): RoleWeights {
  const ofRole = (role: 'user' | 'tool') =>
    fitWeighing(
      [...words]
        .filter(([sample]) => roleOf(sample) === role && (votes === undefined || votes.has(sample.id)))
        .map(([{ id, label }, said]) => ({ label, sources: { votes: votes?.get(id), words: said } })),
    );
  return { user: ofRole('user'), tool: ofRole('tool') };
}

function roleOf({ material }: Sample): 'user' | 'tool' {
  return material?.next.role === 'user' ? 'user' : 'tool';
}

/** Biases and thresholds, on the part `dev`. */
export async function fitEntry(
  items: readonly LabelledItem[],
  prompts: ScoredPrompts,
  engine: JudgeEngine,
  onProgress: OnProgress,
): Promise<CalibrationEntry> {
  const dev = items.filter(({ split }) => split === 'dev');
  const voter = new ScoredVoter(prompts, { entries: [] });
  const { wordings, digest } = prompts;
  const measured = await measureLikelihoods({
    voter,
    engine,
    wordings,
    items: dev,
    voteWaitMs,
    onProgress: (done, all) => onProgress('thresholds', done, all),
  });
  return fitCalibration(measured, engine.model, digest, dev.length);
}

/** The mean of an item's votes, by id, for all items of the part `calibration`. */
export async function castVotes(
  items: readonly LabelledItem[],
  prompts: ScoredPrompts,
  table: Pick<CalibrationTable, 'entries'>,
  engine: JudgeEngine,
  onProgress: OnProgress,
): Promise<Map<string, Likelihoods>> {
  const voter = new ScoredVoter(prompts, table);
  const found = new Map<string, Likelihoods>();
  const asked = items.filter(({ split }) => split === 'calibration');
  for (const [at, item] of asked.entries()) {
    const cast = await Promise.all(
      Array.from({ length: votesCast }, (_, vote) =>
        voter.cast(engine, materialOfItem(item), vote, { deadlineMs: voteWaitMs }),
      ),
    );
    const mean = meanLikelihoods(cast);
    if (mean !== undefined) found.set(item.id, mean);
    onProgress('votes', at + 1, asked.length);
  }
  return found;
}
