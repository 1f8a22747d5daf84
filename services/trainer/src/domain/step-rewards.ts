// Rewards of attempts at a task. In: waiting turns that are steps of attempts, and what is fixed of their groups. Out: for each, that it
// waits for its outcome or for the other attempts, or its advantage: its reward, standardised over the same step of all attempts of its
// group. The figures of a group are fixed by the first batch that takes or settles one of its steps, so that it may be trained on in
// several batches, whatever comes later. Pure.
//
// OpenClaw-RL (arXiv 2603.10165), step-wise rewards: outcome + mean of the judge's votes, standardised by step index within a group.
import { TurnJudged_Source, type AttemptStep, type StepFigures } from '@backtalk/proto/facts';

import { stepMeanOf } from './baselines.js';
import type { Candidate } from './candidate.js';
import type { Recipe } from './recipe.js';
import type { LearningContext } from './sample-worth.js';

/** A step whose reward is known, with what it is measured by. */
export interface RewardedStep {
  readonly attempt: AttemptStep;
  /** Of all steps of its group. */
  readonly ofGroup: readonly StepFigures[];
}

export type Step =
  | { readonly kind: 'waiting'; readonly untilMs: number }
  | { readonly kind: 'settled'; readonly reason: 'no_outcome' }
  | ({ readonly kind: 'rewarded'; readonly advantage: number } & RewardedStep);

type Context = Pick<LearningContext, 'steps' | 'baselines' | 'nowMs' | 'readSinceMs'>;

/** Rewards that lie closer together than rounding are equal. */
const deviationLeast = 1e-6;
const figuresMax = 1_024;
/** A trainer that begins to read gets what waits in no order: by then the newest of it is there, too. */
const readWithinMs = 60_000;

/** By turn, of those that are steps of attempts. */
export function stepsAmong(candidates: readonly Candidate[], context: Context, recipe: Recipe): Map<string, Step> {
  const groups = grouped(
    candidates.filter((candidate) => groupOf(candidate) !== ''),
    groupOf,
  );
  return new Map([...groups.values()].flatMap((group) => stepsOfGroup(group, context, recipe)));
}

/** Empty for a turn of no attempt; an attempt that names no group is one of its own. */
function groupOf({ group, judged }: Pick<Candidate, 'group' | 'judged'>): string {
  if (group !== '') return group;
  return judged.outcome === undefined ? '' : judged.session;
}

function stepsOfGroup(group: readonly Candidate[], context: Context, recipe: Recipe): [string, Step][] {
  const attempts = grouped(group, ({ judged }) => judged.session);
  const over = group.filter(({ judged }) => judged.outcome !== undefined);
  const name = group.map(groupOf).find((one) => one !== '') ?? '';
  const fixed = context.steps.filter((one) => one.group === name);
  const untilMs = waitEndMs(over, context, recipe);
  const isAlone = group.every((candidate) => candidate.group === '');
  const isComplete = isAlone || fixed.length > 0 || isWhole(over) || context.nowMs >= untilMs;
  const among = { name, fixed, recipe };
  const ofGroup = figuresOf(over, among);
  return [...attempts.values()].flatMap((turns) => {
    const leftMs = waitEndMs(turns, context, recipe);
    return turns.map((candidate): [string, Step] => {
      const { turn, judged, step } = candidate;
      if (judged.outcome === undefined) return [turn, unfinished(leftMs, context)];
      if (!isComplete) return [turn, { kind: 'waiting', untilMs }];
      const attempt = { group: name, attempt: judged.session, step, reward: rewardOf(candidate, recipe) };
      const figures = ofGroup.find((one) => one.step === step) ?? figuresOfStep(step, [candidate], among);
      const advantage = advantageOf(attempt.reward, figures, baselineFor(candidate, context, recipe));
      return [turn, { kind: 'rewarded', advantage, attempt, ofGroup }];
    });
  });
}

interface Among {
  readonly name: string;
  readonly fixed: readonly StepFigures[];
  readonly recipe: Recipe;
}

/** Of each step that waits: as a batch has fixed it, or of what waits. Answers that may not be trained on are in none. */
function figuresOf(over: readonly Candidate[], among: Among): StepFigures[] {
  const steps = grouped(
    over.filter(({ reason }) => reason === undefined),
    ({ step }) => step,
  );
  return [...steps].map(([step, bucket]) => figuresOfStep(step, bucket, among));
}

function figuresOfStep(step: number, bucket: readonly Candidate[], { name, fixed, recipe }: Among): StepFigures {
  const known = fixed.find((one) => one.step === step);
  if (known !== undefined) return known;
  const rewards = bucket.map((candidate) => rewardOf(candidate, recipe));
  const middle = mean(rewards);
  const deviation = Math.sqrt(mean(rewards.map((one) => (one - middle) ** 2)));
  const user = bucket[0]?.user ?? '';
  return { group: name, step, mean: middle, deviation, count: rewards.length, user };
}

/** An attempt that goes on has its turns waiting; one that was left behind gives nothing. */
function unfinished(untilMs: number, { nowMs }: Context): Step {
  return nowMs < untilMs ? { kind: 'waiting', untilMs } : { kind: 'settled', reason: 'no_outcome' };
}

function waitEndMs(turns: readonly Candidate[], { readSinceMs }: Context, { groupWaitMs }: Recipe): number {
  const newestMs = turns.reduce((newest, { judgedAtMs }) => Math.max(newest, judgedAtMs), -Infinity);
  return Math.max(newestMs + groupWaitMs, readSinceMs + Math.min(groupWaitMs, readWithinMs));
}

/** As many attempts as were announced, with all of their turns. */
function isWhole(over: readonly Candidate[]): boolean {
  const wanted = over.reduce((most, { judged }) => Math.max(most, judged.outcome?.attempts ?? 0), 0);
  const whole = [...grouped(over, ({ judged }) => judged.session).values()].filter(
    (turns) => turns.length >= (turns[0]?.judged.outcome?.turns ?? 0),
  );
  return wanted > 0 && whole.length >= wanted;
}

/** Evidence and feedback outrank votes, which count by their mean and not by their majority. */
function rewardOf({ judged }: Candidate, { stepReward }: Recipe): number {
  const score = judged.outcome?.score ?? 0;
  if (stepReward === 'outcome') return score;
  const votes = judged.source === TurnJudged_Source.SOURCE_VOTES ? judged.votes.filter(({ valid }) => valid) : [];
  return score + (votes.length === 0 ? judged.verdict : mean(votes.map(({ verdict }) => verdict)));
}

function advantageOf(reward: number, { mean: middle, deviation, count }: StepFigures, baseline: number): number {
  if (count < 2) return reward - baseline;
  return deviation < deviationLeast ? 0 : (reward - middle) / deviation;
}

/** Where there is nothing to compare with in its group, the mean of its person's earlier steps stands in. */
function baselineFor({ user }: Candidate, { baselines }: Context, { baseline }: Recipe): number {
  return baseline === 'none' ? 0 : stepMeanOf(baselines, user);
}

/** What a batch fixes of the groups of which it takes or settles a step; the oldest leave first. */
export function figuresAfter(earlier: readonly StepFigures[], handled: readonly RewardedStep[]): StepFigures[] {
  const keyOf = ({ group, step }: StepFigures) => `${group} ${String(step)}`;
  const after = new Map(earlier.map((figures) => [keyOf(figures), figures]));
  for (const { ofGroup } of handled)
    for (const figures of ofGroup) if (!after.has(keyOf(figures))) after.set(keyOf(figures), figures);
  return [...after.values()].slice(-figuresMax);
}

function grouped<T, K>(values: readonly T[], keyOf: (value: T) => K): Map<K, T[]> {
  const groups = new Map<K, T[]>();
  for (const value of values) {
    const key = keyOf(value);
    const group = groups.get(key);
    if (group === undefined) groups.set(key, [value]);
    else group.push(value);
  }
  return groups;
}

function mean(values: readonly number[]): number {
  return values.reduce((sum, value) => sum + value, 0) / values.length;
}
