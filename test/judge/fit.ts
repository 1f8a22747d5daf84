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
import { materialOfItem, type LabelledItem } from './items.js';
import { measureLikelihoods } from './measure.js';

/** As many as the judge has cast by default. */
export const votesCast = 3;
const voteWaitMs = 120_000;

export type OnProgress = (what: string, done: number, all: number) => void;

/** Learned from all that may be learned from. */
export function fitJudgeWords(items: readonly LabelledItem[]): WordTable {
  return fitWords(items.filter(({ split }) => split !== 'test'));
}

/** On the part `calibration`, with words that were learned from the other parts only. */
export function fitWeights(items: readonly LabelledItem[], votes?: ReadonlyMap<string, Likelihoods>): RoleWeights {
  const words = fitWords(items.filter(({ split }) => split === 'fewshot' || split === 'dev'));
  const ofRole = (role: LabelledItem['role']) => {
    const own = items.filter((item) => item.split === 'calibration' && item.role === role);
    return fitWeighing(
      own.map((item) => ({
        label: item.label,
        sources: {
          votes: votes?.get(item.id),
          words: wordLikelihoods(words[role], featuresOf(materialOfItem(item))),
        },
      })),
    );
  };
  return { user: ofRole('user'), tool: ofRole('tool') };
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
