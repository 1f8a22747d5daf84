/**
 * What `test/judge` measures and fits: the judge's rule, its votes, and what a model too small to read is given.
 */
export { hasLastingWords } from './domain/hints/lasting-words.js';
export { createStandingSentences, sentencesOf, type StandingSentences } from './domain/hints/stands.js';
export { isSaidBy } from './domain/hints/said-by.js';
export { judge } from './domain/judgement.js';
export type { Material } from './domain/material.js';
export type { NextState } from './domain/next-state.js';
export type { CalibrationEntry, CalibrationTable } from './domain/small-model/calibration.js';
export { featuresOf } from './domain/small-model/features.js';
export { wordsAlone } from './domain/small-model/bare.js';
export {
  createReader,
  logSoftmax,
  meanLikelihoods,
  saidFor,
  sumsOf,
  weigh,
  wordLikelihoods,
  type Reader,
  type RoleWeights,
  type Sources,
  type Weighing,
  type WordTable,
  type WordWeights,
} from './domain/small-model/reader.js';
export { scoreOf, verdictFromScore, type Thresholds, type WordingCalibration } from './domain/small-model/score.js';
export { readMaterial } from './domain/read-material.js';
export { example, saidIn, type Wordings } from './domain/small-model/wordings.js';
export { gatherEvidence } from './domain/evidence.js';
export type { Verdict } from './domain/verdict-value.js';
export { combine, labelOf, labels, majority, type CastVote, type Likelihoods } from './domain/verdict.js';
export { FreeVoter } from './outputs/free-voter.js';
export {
  readCalibrationTable,
  readIsBare,
  readPlanted,
  readReader,
  readStandingSentences,
  scoredPrompts,
  type ScoredPrompts,
} from './outputs/labelled-set.js';
export { ScoredVoter } from './outputs/scored-voter.js';
export type { JudgeEngine, Voter } from './outputs/voter.js';
