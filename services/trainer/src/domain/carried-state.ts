// What does a policy carry from batch to batch?
// In: the ledger's chain. Out: lessons, baselines, KL weight and normaliser as the next batch finds them: the last fact's, moved on by
// the report of its step if nobody has read that yet. Never sees the turns that wait.
import type { Lesson, UserBaseline } from '@backtalk/proto/facts';

import type { BatchChain } from './batch-chain.js';
import { nextKlBeta } from './kl-beta.js';
import { afterReport } from './lesson-ledger.js';
import type { LessonRule } from './lesson-progress.js';

export interface CarriedState {
  readonly lessons: readonly Lesson[];
  readonly baselines: readonly UserBaseline[];
  readonly klBeta: number;
  /** 0 before the first step. */
  readonly meanAnswerLength: number;
}

export interface CarriedRule extends LessonRule {
  readonly klBetaFirst: number;
  readonly klTargetNats: number;
}

export function carriedState(chain: BatchChain, rule: CarriedRule): CarriedState {
  const last = chain.last();
  if (last === undefined) return { lessons: [], baselines: [], klBeta: rule.klBetaFirst, meanAnswerLength: 0 };
  const { lessons, baselines, klBeta, meanAnswerLength } = last;
  const unread = chain.unreadReport();
  if (unread === undefined) return { lessons, baselines, klBeta, meanAnswerLength };
  const report = unread.trained.report;
  return {
    lessons: afterReport(lessons, unread.batch.samples, report?.samples ?? [], rule),
    baselines,
    klBeta: nextKlBeta(klBeta, report?.measurements['kl_base'], rule.klTargetNats),
    meanAnswerLength,
  };
}
