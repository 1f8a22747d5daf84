/**
 * The judge as a library: the service for tests of the loop, and its evaluation for operators.
 */
export {
  evaluateJudge,
  rowNames,
  type EvaluateOptions,
  type EvaluationRow,
  type RowName,
} from './outputs/evaluation/evaluate.js';
export { fitCalibration, type Measured } from './domain/evaluation/fit.js';
export { fitPool, type HeardOf } from './domain/evaluation/fit-pool.js';
export { measureLikelihoods, type MeasureOptions } from './outputs/evaluation/measure.js';
export { FreeVoter } from './outputs/free-voter.js';
export {
  readCalibrationTable,
  readLabelledItems,
  readReader,
  scoredPrompts,
  type ScoredPrompts,
} from './outputs/labelled-set.js';
export { ScoredVoter } from './outputs/scored-voter.js';
export type { JudgeEngine, Voter, VoterFacts, VoteOptions } from './outputs/voter.js';
export { judgeSettings, type JudgeConfig } from './config.js';
export { createJudge, type Judge, type JudgeOverrides } from './service.js';
export type { LabelledItem } from './domain/labelled-item.js';
