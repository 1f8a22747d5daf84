// What a waiting turn is worth to the next batch, whatever else waits: shares, duplicates and sizes are the batch rule's.
import { asWording, inScope, ownWish, templateTokenIn } from '@backtalk/kit';
import { Lesson_State, type Lesson, type StepFigures, type UserBaseline } from '@backtalk/proto/facts';

import { baselineOf } from './baselines.js';
import type { Candidate } from './candidate.js';
import { crowdedOutReason } from './crowding.js';
import { isSince } from './lesson-ledger.js';
import { isTheirs } from './lesson-matching.js';
import { isOver, isWordedSo } from './lessons-in-force.js';
import type { LessonScope, Recipe } from './recipe.js';
import type { SettleReason } from './settle-reason.js';
import type { Step } from './step-rewards.js';

/** A scalar reward below this says nothing. */
const advantageFloor = 0.05;

/** Steps from a version to the next parent along its ancestry. */
export type VersionsBack = (version: string) => number | 'burned' | 'unknown';

/** What the newest batches and versions of a policy say about any turn. */
export interface LearningContext {
  readonly lessons: readonly Lesson[];
  readonly baselines: readonly UserBaseline[];
  /** Of steps of attempts, those that a batch has fixed. */
  readonly steps: readonly StepFigures[];
  readonly nowMs: number;
  /** When the log began to be read for what waits. */
  readonly readSinceMs: number;
  readonly versionsBack: VersionsBack;
  /** Versions that were made after that of a batch. */
  readonly versionsAfter: (batch: number) => number;
}

export type Worth =
  /** For the outcome of its attempt, or for others of its group. */
  | { readonly kind: 'waiting'; readonly untilMs: number }
  | { readonly kind: 'settled'; readonly reason: string }
  | {
      readonly kind: 'effective';
      readonly advantage: number;
      readonly hinted: boolean;
      readonly wished: boolean;
      /** Versions between the one that answered and the next parent. */
      readonly back: number;
    }
  | { readonly kind: 'idle'; readonly advantage: number; readonly back: number };

/** @param step of an attempt at a task; undefined: of none */
export function worthOf(candidate: Candidate, context: LearningContext, recipe: Recipe, step?: Step): Worth {
  // One that gives its place to others waits no longer.
  if (step?.kind === 'waiting' && candidate.reason !== crowdedOutReason) return step;
  if (candidate.reason !== undefined) return { kind: 'settled', reason: candidate.reason };
  const { judged, greedy, cut, shown } = candidate;
  if (step?.kind === 'waiting' || step?.kind === 'settled') return settled('no_outcome');
  // It has no reward, and without a distillation term nothing else.
  if (shown.length > 0 && !isTaught(recipe)) return settled('lessons_shown');
  const back = context.versionsBack(candidate.version);
  if (back === 'burned') return settled('burned_version');
  if (back === 'unknown') return settled('unknown_version');
  // The exact measure, mean |log v|, is the training worker's, which sees both distributions.
  const fresh = back <= recipe.rewardVersions;
  if (!fresh && !(back <= recipe.distillVersions && distils(recipe))) return settled('stale');

  const reward = step?.advantage ?? spokenReward(candidate, context, recipe);
  const rewarded = fresh && recipe.method !== 'opd' && shown.length === 0 && !greedy && !(cut && reward > 0);
  const advantage = rewarded ? reward : 0;
  const hintCounts = recipe.method !== 'binary' && (!greedy || distils(recipe));
  const isAsked = (words: string): boolean =>
    hintCounts &&
    words !== '' &&
    templateTokenIn(words) === undefined &&
    !isFollowedSince(asWording(words), candidate, back, context) &&
    !isTakenBack(asWording(words), candidate, context, recipe.lessonScope);
  const hinted = isAsked(judged.hint);
  const wished = isAsked(ownWish(judged).text);
  const isSpoken = judged.verdict !== 0 || judged.hasAdvantage || step !== undefined;
  // Where it is shown, its person has nothing to correct: the turn itself is what the lesson is learned from.
  const teaches = context.lessons.some((lesson) => isBeingLearned(lesson, candidate));
  const isEffective = hinted || wished || teaches || (isSpoken && Math.abs(advantage) > advantageFloor);
  if (isEffective) return { kind: 'effective', advantage, hinted, wished, back };
  return { kind: 'idle', advantage, back };
}

/** A = r − b; the at-least-one rule's advantage is used as it is. */
function spokenReward({ judged, user }: Candidate, { baselines }: LearningContext, recipe: Recipe): number {
  if (judged.hasAdvantage) return judged.advantage;
  return judged.verdict - (recipe.baseline === 'none' || judged.verdict === 0 ? 0 : baselineOf(baselines, user));
}

/** One that was said to stand is shown before a batch makes a lesson of it: then its words are known, and no id. */
function isBeingLearned(lesson: Lesson, candidate: Candidate): boolean {
  if (lesson.state !== Lesson_State.STATE_ACTIVE || !inScope(lesson, candidate)) return false;
  return candidate.shown.some(({ lesson: id, text }) => (id === '' ? isWordedSo(lesson, text) : id === lesson.id));
}

/** A correction of an answer from before its lesson was learned asks for nothing new; one of a later answer does. */
function isFollowedSince(wording: string, speaker: Candidate, back: number, context: LearningContext): boolean {
  return context.lessons.some((lesson) => {
    if (lesson.state !== Lesson_State.STATE_LEARNED || !inScope(lesson, speaker)) return false;
    return isWordedSo(lesson, wording) && back > context.versionsAfter(lesson.sinceBatch);
  });
}

/** Whether any sample is held to a teacher. */
export function isTaught({ method, weightOpd }: Recipe): boolean {
  return method === 'opd' || (method === 'combined' && weightOpd > 0);
}

/** Its person, or an operator, ended the lesson since, or gave it in other words. */
function isTakenBack(wording: string, speaker: Candidate, { lessons }: LearningContext, scope: LessonScope): boolean {
  const said = lessons.filter((lesson) => isTheirs(lesson, speaker, scope) && isWordedSo(lesson, wording));
  return said.every(isOver) && said.some((lesson) => isSince(lesson, speaker));
}

/** Distillation that looks at whole distributions: it is exact at each position, however old or greedy the answer is. */
export function distils({ method, opdForm }: Pick<Recipe, 'method' | 'opdForm'>): boolean {
  return method !== 'binary' && opdForm !== 'sampled';
}

function settled(reason: SettleReason): Worth {
  return { kind: 'settled', reason };
}
