// One wish after the other: while a person's lesson is being learned, what merely came back waits for it. A complaint ("where did my bullets
// go?") that two sessions bring is a lesson of its own wherever the base does not see that it asks for the same, and beside a plain wish in
// a teacher's prompt it spoils the answers. What is said to stand, was given, or has come part of its way waits for none: what teachers
// are shown no longer is unlearned. Pure.
import { isInForce, lessonProgress } from '@backtalk/kit';
import { Lesson_State, type Lesson } from '@backtalk/proto/facts';

/** What waited for a lesson that is being learned no longer is heard once and no more: the next correction that asks for it makes it a lesson again. */
export function withWaits(lessons: readonly Lesson[]): Lesson[] {
  const stateOf = new Map(lessons.map(({ id, state }) => [id, state]));
  const released = lessons.map((lesson) => {
    if (lesson.waitsFor === '' || !isInForce(lesson)) return { ...lesson, waitsFor: '' };
    return stateOf.get(lesson.waitsFor) === Lesson_State.STATE_ACTIVE ? lesson : heardOnly(lesson);
  });
  const scopes = new Map<string, Lesson[]>();
  for (const lesson of released.filter(isBeingLearned)) {
    const scope = `${lesson.scopeTenant}.${lesson.scopeUser}`;
    scopes.set(scope, [...(scopes.get(scope) ?? []), lesson]);
  }
  const waitsFor = new Map<string, string>();
  for (const own of scopes.values()) {
    const first = firstOf(own, released);
    const newest = first.at(-1)?.id ?? '';
    for (const lesson of own) if (!first.includes(lesson)) waitsFor.set(lesson.id, newest);
  }
  return released.map((lesson) => ({ ...lesson, waitsFor: waitsFor.get(lesson.coveredBy || lesson.id) ?? '' }));
}

/** Progress from which a lesson is on its way. */
const onItsWay = 0.25;

/** Those that are said to stand or on their way; where none is, the one that was asked for most often, of several the oldest. */
function firstOf(own: readonly Lesson[], all: readonly Lesson[]): readonly Lesson[] {
  const oneWish = (lesson: Lesson) => [lesson, ...all.filter(({ coveredBy }) => coveredBy === lesson.id)];
  const stands = (lesson: Lesson) => oneWish(lesson).some((one) => one.stands || one.session === '');
  const isOnItsWay = (lesson: Lesson) => (lessonProgress(lesson) ?? 0) >= onItsWay;
  const first = own.filter((lesson) => stands(lesson) || isOnItsWay(lesson));
  if (first.length > 0) return first;
  const asked = (lesson: Lesson) => oneWish(lesson).reduce((sum, { hints }) => sum + hints, 0);
  return [own.reduce((one, other) => (asked(other) > asked(one) ? other : one))];
}

function isBeingLearned({ state, coveredBy }: Lesson): boolean {
  return state === Lesson_State.STATE_ACTIVE && coveredBy === '';
}

function heardOnly(lesson: Lesson): Lesson {
  return { ...lesson, state: Lesson_State.STATE_HEARD, waitsFor: '', coveredBy: '', measures: [], steps: 0 };
}
