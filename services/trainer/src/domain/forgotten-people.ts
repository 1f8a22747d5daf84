// People who are forgotten (`lesson.changed` with ACTION_ERASE). In: changes as the log has them. Out: the ledger without them, and what of
// the turns that wait is theirs: their own answers, and what they said of another's. Pure.
import { LessonChanged_Action, type Lesson } from '@backtalk/proto/facts';

import type { Candidate } from './candidate.js';
import type { StoredChange } from './lesson-changes.js';
import type { SaidOf } from './pending-turns.js';

export interface Person {
  readonly tenant: string;
  readonly user: string;
}

export interface Leaving extends Person {
  /** Where in the log it is said. */
  readonly sequence: number;
  /** Broker's time of that. */
  readonly timeMs: number;
}

export function forgottenIn(changes: readonly StoredChange[]): Leaving[] {
  return changes.flatMap(({ message: { action, tenant, user }, sequence, timeMs }) =>
    action === LessonChanged_Action.ACTION_ERASE ? [{ tenant, user, sequence, timeMs }] : [],
  );
}

/** Where lessons hold for everyone, what a person asked for goes too, even if others did as well; `lesson` names one of which no case says it. */
export function lessonsWithout(lessons: readonly Lesson[], person: Person & { readonly lesson?: string }): Lesson[] {
  const { tenant, user, lesson: named = '' } = person;
  const isTheirs = ({ id, scopeTenant, scopeUser, cases }: Lesson) =>
    scopeTenant === tenant &&
    (id === named || scopeUser === user || (scopeUser === '' && cases.some((one) => one.user === user)));
  const gone = new Set(lessons.filter(isTheirs).map(({ id }) => id));
  const still = (id: string) => (gone.has(id) ? '' : id);
  return lessons
    .filter(({ id }) => !gone.has(id))
    .map((lesson) => ({ ...lesson, supersededBy: still(lesson.supersededBy) }));
}

/** Baselines, or figures of attempts. A user's hash is of the tenant too. */
export function figuresWithout<T extends { readonly user: string }>(of: readonly T[], people: readonly Person[]): T[] {
  return of.filter((one) => !people.some(({ user }) => user === one.user));
}

/**
 * A judgement that is delivered after they were forgotten, and that no batch takes or names: it was made before that, of what they said; or of a
 * turn of theirs that is deleted.
 */
export function isOfForgotten(candidate: Candidate, people: readonly Leaving[]): boolean {
  const { tenant, user, judged, judgedAtMs, reason } = candidate;
  return people.some((person) => {
    if (person.tenant !== tenant) return false;
    const isOwn = person.user === user;
    const isBefore = judgedAtMs <= person.timeMs;
    return isOwn ? isBefore || reason === 'missing' : person.user === judged.giver && isBefore;
  });
}

interface TurnsOfForgotten {
  readonly own: readonly string[];
  /** Of others: the first revision in which they said something, which those after it carry on. */
  readonly judged: readonly { readonly turn: string; readonly from: number }[];
}

/** Of the turns that wait: their own, and those of others that wait with what they said of them. */
export function turnsOfForgotten(waiting: readonly SaidOf[], people: readonly Person[]): TurnsOfForgotten {
  const isAmong = (tenant: string, user: string) =>
    people.some((person) => person.tenant === tenant && person.user === user);
  const isOwn = ({ candidate: { tenant, user } }: SaidOf) => isAmong(tenant, user);
  const judged = waiting
    .filter((said) => !isOwn(said))
    .flatMap(({ candidate: { turn, tenant }, givers }) => {
      const theirs = [...givers].filter(([, giver]) => isAmong(tenant, giver)).map(([revision]) => revision);
      return theirs.length === 0 ? [] : [{ turn, from: Math.min(...theirs) }];
    });
  return { own: waiting.filter(isOwn).map(({ candidate: { turn } }) => turn), judged };
}
