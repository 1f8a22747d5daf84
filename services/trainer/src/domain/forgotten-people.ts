// People who are forgotten (`lesson.changed` with ACTION_ERASE). In: changes as the log has them. Out: the ledger without them, and what of
// the turns that wait is theirs: their own answers, and what they said of another's. Pure.
import { LessonChanged_Action, type Lesson, type UserBaseline } from '@backtalk/proto/facts';

import type { Candidate } from './candidate.js';
import type { StoredChange } from './lesson-changes.js';

export interface Person {
  readonly tenant: string;
  readonly user: string;
}

export function forgottenIn(changes: readonly StoredChange[]): Person[] {
  return changes.flatMap(({ message: { action, tenant, user } }) =>
    action === LessonChanged_Action.ACTION_ERASE ? [{ tenant, user }] : [],
  );
}

/** Where lessons hold for everyone, what a person asked for goes too, even if others did as well. */
export function lessonsWithout(lessons: readonly Lesson[], { tenant, user }: Person): Lesson[] {
  const isTheirs = ({ scopeTenant, scopeUser, cases }: Lesson) =>
    scopeTenant === tenant && (scopeUser === user || (scopeUser === '' && cases.some((one) => one.user === user)));
  const gone = new Set(lessons.filter(isTheirs).map(({ id }) => id));
  const still = (id: string) => (gone.has(id) ? '' : id);
  return lessons
    .filter(({ id }) => !gone.has(id))
    .map((lesson) => ({ ...lesson, supersededBy: still(lesson.supersededBy) }));
}

/** A user's hash is of the tenant too. */
export function baselinesWithout(baselines: readonly UserBaseline[], people: readonly Person[]): UserBaseline[] {
  return baselines.filter((baseline) => !people.some(({ user }) => user === baseline.user));
}

export function turnsOfForgotten(waiting: readonly Candidate[], people: readonly Person[]): string[] {
  return waiting.flatMap(({ turn, tenant, user, judged }) =>
    people.some((person) => person.tenant === tenant && (person.user === user || person.user === judged.giver))
      ? [turn]
      : [],
  );
}
