// What a policy carries from batch to batch: the last fact's state, moved on by the report of its step if no later fact has taken that in.
import type { Lesson, StepFigures, UserBaseline } from '@backtalk/proto/facts';

import type { BatchChain } from './batch-chain.js';
import { afterStep, afterVersions, type VersionsSince } from './lesson-progress.js';
import type { Recipe } from './recipe.js';

export interface CarriedState {
  readonly lessons: readonly Lesson[];
  readonly baselines: readonly UserBaseline[];
  /** Of steps of attempts at tasks, of which some may still wait. */
  readonly steps: readonly StepFigures[];
  readonly klBeta: number;
  /** In tokens; 0 before the first step. */
  readonly meanAnswerLength: number;
  /** Where in the log the last change of a lesson stands that `lessons` has in it. */
  readonly lessonsThrough: number;
}

export function carriedState(chain: BatchChain, line: VersionsSince, recipe: Recipe): CarriedState {
  const last = chain.last();
  if (last === undefined)
    return {
      lessons: [],
      baselines: [],
      steps: [],
      klBeta: recipe.klBetaFirst,
      meanAnswerLength: 0,
      lessonsThrough: 0,
    };
  const { baselines, steps, meanAnswerLength, lessonsThrough } = last;
  // Constant: what the recipe says now, not what an earlier one had come to.
  const klBeta = recipe.klTargetNats === 0 ? recipe.klBetaFirst : last.klBeta;
  const unread = chain.unreadReport();
  const report = unread?.trained.report;
  const reports = report?.samples ?? [];
  // The weights hold nothing of a step whose version was burned.
  const isTaken = unread !== undefined && !line.isUndone(unread.batch.number);
  const stepped = isTaken ? afterStep(last.lessons, unread.batch, reports, recipe) : last.lessons;
  return {
    lessons: afterVersions(stepped, line, chain.nextNumber()),
    baselines,
    steps,
    klBeta: unread === undefined ? klBeta : nextKlBeta(klBeta, report?.measurements['kl_base'], recipe.klTargetNats),
    meanAnswerLength,
    lessonsThrough,
  };
}

const klTolerance = 1.5;
const betaFactor = 2;
const betaMin = 0.001;
const betaMax = 1;

/**
 * The KL term costs a forward pass of the base, so it is off (0) until the policy has drifted beyond the target.
 * @param target nats an answer; 0: β stays as it is
 */
export function nextKlBeta(beta: number, measured: number | undefined, target: number): number {
  if (target === 0 || measured === undefined || !Number.isFinite(measured)) return beta;
  if (measured > target * klTolerance) return Math.min(Math.max(beta * betaFactor, betaMin), betaMax);
  if (measured < target / klTolerance) return beta / betaFactor < betaMin ? 0 : beta / betaFactor;
  return beta;
}
