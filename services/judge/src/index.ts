/**
 * What `test/judge` measures and fits: the judge's rule, its votes, and how it reads words.
 */
export { hasLastingWords } from './domain/hints/lasting-words.js';
export { createStandingSentences, sentencesOf, type StandingSentences } from './domain/hints/stands.js';
export { isSaidBy } from './domain/hints/said-by.js';
export { judge } from './domain/judgement.js';
export type { Material } from './domain/material.js';
export type { NextState } from './domain/next-state.js';
export { featuresOf } from './domain/words/features.js';
export { wordsAlone } from './domain/words/bare.js';
export {
  createReader,
  logSoftmax,
  saidFor,
  sumsOf,
  weigh,
  wordLikelihoods,
  type Reader,
  type RoleWeights,
  type Weighing,
  type WordTable,
  type WordWeights,
} from './domain/words/reader.js';
export { readMaterial } from './domain/read-material.js';
export { gatherEvidence } from './domain/evidence.js';
export type { Verdict } from './domain/verdict-value.js';
export { combine, labelOf, labels, type CastVote, type Likelihoods } from './domain/verdict.js';
export { FreeVoter } from './outputs/free-voter.js';
export { readIsBare, readPlanted, readReader, readStandingSentences } from './outputs/labelled-set.js';
export type { JudgeEngine, Voter } from './outputs/voter.js';
