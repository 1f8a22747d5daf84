// One correction is enough: where too few turns wait for a batch, and a person wants something that is not learned yet, the batch is filled up
// with questions of the trainer's own. In: what waits, and the lessons. Out: the batch that is closed for a lesson's sake, if any. Pure.
import { asWording, inScope, isShown, ownWish, type Speaker } from '@backtalk/kit';
import { Lesson_State, type BatchSample, type Lesson } from '@backtalk/proto/facts';

import type { TrainDecision } from './batch-rule.js';
import { isWordedSo } from './lessons-in-force.js';
import { anchorsMax, type Recipe } from './recipe.js';
import { rehearsalQuestions } from './rehearsal-questions.js';
import type { Waiting, Weighed } from './weigh-turns.js';

/** Fewer would be learnt by heart. */
const questionsMin = 4;

/**
 * Nothing where no person has said anything new that stands, and no lesson is being learned that was in fewer steps than it is rehearsed for.
 * @param isRolledBack a version was burned after it had served, and none was made since
 */
export function rehearsalFor(
  waiting: Waiting,
  lessons: readonly Lesson[],
  recipe: Recipe,
  isRolledBack: boolean,
): TrainDecision | undefined {
  if (recipe.rehearsalSteps === 0 || recipe.method === 'binary') return undefined;
  const isNew = (weighed: Weighed) => asksForMore(weighed, lessons, recipe);
  // What was just undone is not done again unasked.
  const due = isRolledBack ? undefined : speakerOf(lessons, recipe);
  const speaker = waiting.effective.find(isNew)?.candidate ?? due;
  if (speaker === undefined) return undefined;
  const ours = waiting.effective.filter(({ candidate }) => candidate.tenant === speaker.tenant);
  const effective = ours.toSorted((a, b) => a.back - b.back).slice(0, recipe.effective);
  return { kind: 'train', why: 'rehearsed', effective, anchors: [], settled: waiting.settled, rehearsed: speaker };
}

function asksForMore({ wished, candidate }: Weighed, lessons: readonly Lesson[], recipe: Recipe): boolean {
  const { text, stands, bare } = ownWish(candidate.judged);
  if (!wished || !stands || bare) return false;
  const known = lessons.find((lesson) => inScope(lesson, candidate) && isWordedSo(lesson, asWording(text)));
  return known === undefined || isDue(known, recipe);
}

/** Of the lesson that has been active for longest. */
function speakerOf(lessons: readonly Lesson[], recipe: Recipe): Speaker | undefined {
  const due = lessons.filter((lesson) => isDue(lesson, recipe)).toSorted((a, b) => a.sinceBatch - b.sinceBatch)[0];
  return due && { tenant: due.scopeTenant, user: due.scopeUser };
}

/** What merely came back may be praise that was taken for a wish: it is learned from turns alone. */
function isDue(lesson: Lesson, { rehearsalSteps }: Recipe): boolean {
  const isSaid = lesson.state === Lesson_State.STATE_ACTIVE && !lesson.cameBack;
  return isSaid && isShown(lesson) && lesson.steps < rehearsalSteps;
}

/**
 * Samples without a turn, for one person's lessons: other questions from batch to batch.
 * @param taken samples that the batch has besides
 */
export function rehearsedSamples(
  { tenant, user }: Speaker,
  shown: readonly Lesson[],
  { batch, taken, recipe }: { readonly batch: number; readonly taken: number; readonly recipe: Recipe },
): BatchSample[] {
  if (shown.length === 0) return [];
  const whole = recipe.effective + anchorsMax(recipe) / 2;
  const count = Math.min(rehearsalQuestions.length, Math.max(questionsMin, Math.round(whole) - taken));
  return Array.from({ length: count }, (_, at) => ({
    turn: `rehearsal_${batch}_${at + 1}`,
    tenant,
    user,
    revision: 0,
    verdict: 0,
    advantage: 0,
    effective: false,
    lessons: shown.map(({ id }) => id),
    giver: '',
    hindsight: '',
    shown: true,
    question: ((batch * count + at) % rehearsalQuestions.length) + 1,
  }));
}

/** Of a person's turn, and not of a question of the trainer's own. */
export function isOfTurn({ question }: Pick<BatchSample, 'question'>): boolean {
  return question === 0;
}
