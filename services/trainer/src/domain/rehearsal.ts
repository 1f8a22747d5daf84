// One correction is enough: where too few turns wait for a batch, and a person wants something that is not learned yet, the batch is filled up
// with questions of the trainer's own. In: what waits, and the lessons. Out: the batch that is closed for a lesson's sake, if any. Pure.
import { asWording, inForce, inScope, isLeftOut, ownWish, type Speaker } from '@backtalk/kit';
import { Lesson_State, type BatchClosed, type BatchSample, type Lesson } from '@backtalk/proto/facts';

import { eligibleIn, type TrainDecision } from './batch-rule.js';
import type { Candidate } from './candidate.js';
import { isOver, isWordedSo } from './lessons-in-force.js';
import type { Recipe } from './recipe.js';
import { rehearsalQuestions } from './rehearsal-questions.js';
import { isTaught } from './sample-worth.js';
import { pickUnderCap, type RecentSamples } from './share-cap.js';
import type { Waiting, Weighed } from './weigh-turns.js';

/** Fewer would be learnt by heart. */
const questionsMin = 4;

/** What the ledger says of a rehearsal. */
export interface Rehearsing {
  readonly recipe: Recipe;
  readonly recent: RecentSamples;
  /** The newest steps made no version that stands: what came to nothing is not done again unasked. */
  readonly cameToNothing: boolean;
}

/** Nothing where no person has said anything new that stands, and no lesson is being learned that was in fewer steps than it is rehearsed for. */
export function rehearsalFor(
  waiting: Waiting,
  lessons: readonly Lesson[],
  { recipe, recent, cameToNothing }: Rehearsing,
): TrainDecision | undefined {
  if (recipe.rehearsalSteps === 0 || !isTaught(recipe)) return undefined;
  const said = waiting.effective.find((weighed) => asksForMore(weighed, lessons, recipe));
  const due = cameToNothing ? undefined : speakerOf(lessons, recipe);
  const speaker = said?.candidate ?? due;
  if (speaker === undefined) return undefined;
  const isOurs = ({ candidate }: { readonly candidate: Candidate }) => candidate.tenant === speaker.tenant;
  const others = eligibleIn({ ...waiting, effective: waiting.effective.filter(isOurs) }, recipe);
  const first = said === undefined ? [] : [said];
  const rest = others.filter((weighed) => weighed !== said);
  const effective = [...first, ...pickUnderCap(rest, recipe.effective - first.length, 0, recent)];
  const settled = waiting.settled.filter(isOurs);
  const decision = { kind: 'train', why: 'rehearsed', effective, anchors: [], settled, rehearsed: speaker } as const;
  return said === undefined ? decision : { ...decision, saidIn: said.candidate.turn };
}

/** Whether it asks in new words for something new is known only when its batch is made: models may be asked about it. */
function asksForMore({ wished, candidate }: Weighed, lessons: readonly Lesson[], recipe: Recipe): boolean {
  const { text, stands, bare } = ownWish(candidate.judged);
  if (!wished || !stands || bare || candidate.saidAgain === candidate.judged.revision) return false;
  const isKnown = (lesson: Lesson) => !isOver(lesson) && isWordedSo(lesson, asWording(text));
  const known = lessons.find((lesson) => inScope(lesson, candidate) && isKnown(lesson));
  return known === undefined || isLeftOut(known, lessons, candidate) || isDue(known, lessons, recipe);
}

/** Of the lesson that has been active for longest. */
function speakerOf(lessons: readonly Lesson[], recipe: Recipe): Speaker | undefined {
  const oldestFirst = lessons.toSorted((a, b) => a.sinceBatch - b.sinceBatch);
  const due = oldestFirst.find((lesson) => isDue(lesson, lessons, recipe));
  return due && { tenant: due.scopeTenant, user: due.scopeUser };
}

/**
 * What merely came back may be praise that was taken for a wish: it is learned from turns alone. One for which teachers have no room is in no
 * sample, so that its steps would never come.
 */
function isDue(lesson: Lesson, lessons: readonly Lesson[], { rehearsalSteps }: Recipe): boolean {
  const { state, cameBack, steps, scopeTenant: tenant, scopeUser: user } = lesson;
  if (state !== Lesson_State.STATE_ACTIVE || cameBack || tenant === '' || steps >= rehearsalSteps) return false;
  return inForce(lessons, { tenant, user }).some(({ id }) => id === lesson.id);
}

/**
 * A batch that was to be filled up with questions for a turn's sake, and turned out to have none: its lesson was rehearsed for as long as it is.
 * Out: the turn.
 */
export function saidAgainIn(
  { samples }: Pick<BatchClosed, 'samples'>,
  { saidIn }: TrainDecision,
  { effectiveMin }: Recipe,
): string | undefined {
  return samples.every(isOfTurn) && samples.length < effectiveMin ? saidIn : undefined;
}

interface Rehearsed {
  readonly batch: number;
  readonly version: number;
  readonly taken: number;
  readonly recipe: Recipe;
}

/**
 * Samples without a turn, for one person's lessons: other questions from version to version.
 * @param taken samples that the batch has besides
 */
export function rehearsedSamples(
  { tenant, user }: Speaker,
  lessons: readonly Lesson[],
  { batch, version, taken, recipe }: Rehearsed,
): BatchSample[] {
  const shown = inForce(lessons, { tenant, user });
  if (!shown.some((lesson) => isDue(lesson, lessons, recipe))) return [];
  const count = Math.min(rehearsalQuestions.length, Math.max(questionsMin, recipe.effective - taken));
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
    otherHindsights: [],
    shown: true,
    attempt: undefined,
    question: ((version * count + at) % rehearsalQuestions.length) + 1,
  }));
}

/** Of a person's turn, and not of a question of the trainer's own. */
export function isOfTurn({ question }: Pick<BatchSample, 'question'>): boolean {
  return question === 0;
}
