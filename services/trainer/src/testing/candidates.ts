// Candidates and rules for tests of the domain.
import { candidateOf, type Candidate } from '../domain/candidate.js';
import type { BatchRule } from '../domain/batch-rule.js';
import type { PolicyState } from '../domain/sample-worth.js';
import type { WeighRule } from '../domain/weigh-turns.js';
import { completedTurn, judgedTurn, openedTurn, type TurnShape } from './turns.js';

export function candidate(shape: TurnShape, sequence = 1, timeMs = 0): Candidate {
  const facts = { opened: openedTurn(shape), completed: completedTurn(shape), continued: undefined };
  return candidateOf(judgedTurn(shape), facts, sequence, timeMs);
}

export const weighRule: WeighRule = {
  method: 'combined',
  opdForm: 'full',
  baseline: 'running',
  staleness: { rewardVersions: 4, distillVersions: 8 },
  lessonScope: 'user',
  anchorsMax: 8,
};

export const batchRule: BatchRule = {
  effective: 8,
  waitMs: 600_000,
  effectiveMin: 4,
  anchorsPerEffective: 1,
  settleAt: 32,
};

export function policyState(state: Partial<PolicyState> = {}): PolicyState {
  return { lessons: [], baselines: [], versionsBack: () => 0, ...state };
}
