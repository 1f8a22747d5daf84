// One wish after the other: while a person's lesson is being learned, what merely came back waits for it. A complaint ("where did my bullets
// go?") that two sessions bring is a lesson of its own wherever the base does not see that it asks for the same, and beside a plain wish in
// a teacher's prompt it spoils the answers. What is said to stand, was given, or has come part of its way waits for none: what teachers
// are shown no longer is unlearned. Pure.
import { isInForce, isLeftOut, progressOf } from '@backtalk/kit';
import { Lesson_State, type Lesson } from '@backtalk/proto/facts';

import { noSteps } from './lesson-ledger.js';

/** Progress of a version from which a lesson is on its way. */
const onItsWay = 0.25;
/** A lesson that after so many steps was not measured once, as where no engine gives scores, holds up no other. */
const unmeasuredStepsMax = 10;
/** What is asked for so many times as often as what the others wait for takes its place. */
const oftenFrom = 2;

/**
 * What waited for a lesson that is learned, or that was ended, is heard and no more, until a correction asks for it again: a
 * complaint about that lesson is over. What waited for one that cannot be taught takes its turn.
 */
export function withWaits(lessons: readonly Lesson[]): Lesson[] {
  const known = new Map(lessons.map((lesson) => [lesson.id, lesson]));
  const awaited = new Set<Lesson>();
  const released = lessons.map((lesson) => {
    const first = lesson.waitsFor === '' ? undefined : nowOf(lesson.waitsFor, known);
    if (first !== undefined) awaited.add(first);
    const isOver = first?.state === Lesson_State.STATE_LEARNED || first?.state === Lesson_State.STATE_RETIRED;
    return isOver && lesson.cameBack && lesson.state === Lesson_State.STATE_ACTIVE ? heardOnly(lesson) : lesson;
  });
  const scopes = new Map<string, Lesson[]>();
  for (const lesson of released.filter(isBeingLearned)) {
    const scope = `${lesson.scopeTenant}.${lesson.scopeUser}`;
    scopes.set(scope, [...(scopes.get(scope) ?? []), lesson]);
  }
  const waitsFor = new Map<string, string>();
  for (const own of scopes.values()) {
    const first = firstOf(own, released, awaited);
    // Teachers are shown it, so that it comes to an end: what they have no room for would be waited for without one.
    const taught = released
      .filter((lesson) => !own.includes(lesson) || first.includes(lesson))
      .map((lesson) => (own.includes(lesson) ? { ...lesson, waitsFor: '' } : lesson));
    const newest = first.findLast(
      (lesson) =>
        (lesson.measures.length > 0 || lesson.steps < unmeasuredStepsMax) &&
        !isLeftOut({ ...lesson, waitsFor: '' }, taught),
    );
    for (const lesson of own) if (newest !== undefined && !first.includes(lesson)) waitsFor.set(lesson.id, newest.id);
  }
  return released.map((lesson) => ({ ...lesson, waitsFor: waitsFor.get(lesson.coveredBy || lesson.id) ?? '' }));
}

/** Where its words are covered, its cover; where the same or its opposite came after it, that one. */
function nowOf(id: string, known: ReadonlyMap<string, Lesson>): Lesson | undefined {
  const seen = new Set<string>();
  let lesson = known.get(id);
  while (lesson !== undefined && !seen.has(lesson.id)) {
    seen.add(lesson.id);
    const next: Lesson | undefined = known.get(lesson.coveredBy || lesson.supersededBy);
    if (next === undefined) return lesson;
    lesson = next;
  }
  return lesson;
}

/**
 * Those that did not merely come back, or are on their way. Where there is none, the one that others wait for already, unless another is asked
 * for far more often; else the one that is asked for most often, of several the oldest.
 */
function firstOf(own: readonly Lesson[], all: readonly Lesson[], awaited: ReadonlySet<Lesson>): readonly Lesson[] {
  const oneWish = (lesson: Lesson) => [
    lesson,
    ...all.filter((other) => other.coveredBy === lesson.id && isInForce(other)),
  ];
  const isFirst = (lesson: Lesson) => oneWish(lesson).some((one) => !one.cameBack || hasComeFar(one));
  const first = own.filter(isFirst);
  if (first.length > 0) return first;
  const asked = (lesson: Lesson) => oneWish(lesson).reduce((sum, { hints }) => sum + hints, 0);
  const most = own.reduce((one, other) => (asked(other) > asked(one) ? other : one));
  const before = own.find((lesson) => awaited.has(lesson));
  return [before !== undefined && asked(most) < oftenFrom * asked(before) ? before : most];
}

/** Also where a newer version shows less of it: measurements vary. */
function hasComeFar({ state, measures }: Lesson): boolean {
  return state === Lesson_State.STATE_LEARNED || measures.some((measure) => (progressOf([measure]) ?? 0) >= onItsWay);
}

function isBeingLearned({ state, coveredBy }: Lesson): boolean {
  return state === Lesson_State.STATE_ACTIVE && coveredBy === '';
}

function heardOnly(lesson: Lesson): Lesson {
  return { ...lesson, state: Lesson_State.STATE_HEARD, cameBack: false, coveredBy: '', measures: [], ...noSteps() };
}
