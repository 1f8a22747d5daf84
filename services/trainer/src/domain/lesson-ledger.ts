// What a policy is being taught. A wish that is heard becomes a lesson when its words say that it stands, or when a second session brings it
// again where something else was asked: a fact returns with its question, a wish without. Until then no teacher is shown it beyond its own turn. Every change is a function of facts; which
// lessons cover others is measured, and stands in the fact.
import { coverOf, isInForce, isLeftOut, personLessonsMax, type Speaker } from '@backtalk/kit';
import { Lesson, Lesson_State, type LessonCase } from '@backtalk/proto/facts';
import { createHash } from 'node:crypto';

import { isAskedElsewhere, type Questions } from './asked-elsewhere.js';
import { centralWording, isTheirs, lessonOf } from './lesson-matching.js';
import { isOver } from './lessons-in-force.js';
import type { LessonScope } from './recipe.js';
import type { Relate, WishRelation } from './wish-relation.js';

/** A wish in a person's own words, on one line. */
export interface Wish extends Speaker {
  readonly turn: string;
  readonly session: string;
  readonly text: string;
  /** The person says that it holds beyond the turn. */
  readonly stands: boolean;
  /** Broker's time. */
  readonly saidAtMs: number;
}

/** What decides about a change beside the change itself. */
export interface LedgerChange {
  /** The batch that it will stand in. */
  readonly batch: number;
  readonly relate: Relate;
}

export interface Hearing extends LedgerChange {
  /** Of the turns of wishes, and of lessons that were heard before. */
  readonly questions: Questions;
}

const lessonsMax = 2_048;
const wordingsMax = 16;
const casesMax = 8;

/** Turns whose questions decide about these wishes: their own, and those of what was heard before in like words. */
export function askedTurns(
  lessons: readonly Lesson[],
  wishes: readonly Wish[],
  scope: LessonScope,
  relate: Relate,
): LessonCase[] {
  return wishes.flatMap((wish) => {
    const { turn, tenant, user } = wish;
    const home = lessonOf(lessons, wish, relate, scope);
    return [{ turn, tenant, user }, ...(home?.state === Lesson_State.STATE_HEARD ? home.cases : [])];
  });
}

export function withWishes(
  lessons: readonly Lesson[],
  wishes: readonly Wish[],
  scope: LessonScope,
  change: Hearing,
): Lesson[] {
  return bounded(wishes.reduce((ledger, wish) => withWish(ledger, wish, scope, change), [...lessons]));
}

function withWish(ledger: Lesson[], wish: Wish, scope: LessonScope, change: Hearing): Lesson[] {
  const home = lessonOf(ledger, wish, change.relate, scope);
  // It is asked for already, by a lesson that is not theirs.
  if (home !== undefined && !isTheirs(home, wish, scope)) return ledger;
  const first = firstHeard(wish, scope, change.batch);
  // What the page or a command said since is newer, though turns wait longer for their batch.
  const newer = ledger.findLast(
    (one) => isInForce(one) && isBeside(one, first) && isSince(one, wish) && isOpposite(one, wish, change),
  );
  if (home === undefined) {
    if (newer !== undefined) return [...ledger, retired(first, change.batch, 'superseded', newer.id)];
    return wish.stands ? takenUp(ledger, first, change) : [...ledger, first];
  }
  const isSpent = newer !== undefined || isSince(home, wish);
  return isSpent ? replaced(ledger, withHint(home, wish)) : heardAgain(ledger, home, wish, change);
}

const isOpposite = ({ text }: Lesson, wish: Wish, { relate }: LedgerChange) => relate(text, wish.text) === 'opposite';

/** Whether its person, or an operator, said something of it in so many words after that. */
export function isSince({ changedAtMs }: Lesson, { saidAtMs }: Pick<Wish, 'saidAtMs'>): boolean {
  return changedAtMs > 0 && saidAtMs <= changedAtMs;
}

function firstHeard({ turn, tenant, user, session, text }: Wish, scope: LessonScope, batch: number): Lesson {
  return Lesson.fromPartial({
    id: idFrom(turn),
    text,
    scopeUser: scope === 'policy' ? '' : user,
    state: Lesson_State.STATE_HEARD,
    hints: 1,
    firstTurn: turn,
    scopeTenant: tenant,
    session,
    sinceBatch: batch,
    cases: [{ turn, tenant, user }],
  });
}

export function idFrom(text: string): string {
  return `lesson_${createHash('sha256').update(text).digest('hex').slice(0, 16)}`;
}

function heardAgain(ledger: readonly Lesson[], home: Lesson, wish: Wish, change: Hearing): Lesson[] {
  const heard = withHint(home, wish);
  // Where it is not known, it counts as the same session.
  const isOtherSession = home.session !== '' && wish.session !== '' && home.session !== wish.session;
  const isSecond = isOtherSession && isAskedElsewhere(home.cases, wish.turn, change.questions);
  const isBack = home.state === Lesson_State.STATE_HEARD ? isSecond : home.cameBack;
  const lesson = { ...heard, cameBack: isBack && !wish.stands };
  if (wish.stands && isInForce(home) && isLeftOut(home, ledger, wish)) return broughtBack(ledger, lesson, change);
  switch (home.state) {
    case Lesson_State.STATE_HEARD:
      return wish.stands || isSecond ? takenUp(ledger, lesson, change, { said: wish.text }) : replaced(ledger, lesson);
    case Lesson_State.STATE_LEARNED:
      // Its measurements stay: they say how far it had come.
      return replaced(ledger, { ...lesson, state: Lesson_State.STATE_ACTIVE, sinceBatch: change.batch });
    case Lesson_State.STATE_RETIRED:
      if (home.endedBy === 'operator') return [...ledger];
      if (wish.stands) return takenUp(ledger, anew(lesson), change, { said: wish.text });
      return replaced(ledger, heardAnew(lesson, wish, change.batch));
    case Lesson_State.STATE_UNTEACHABLE: {
      // Other words may be obeyed where these were not.
      const isKnown = home.text === wish.text || home.wordings.includes(wish.text);
      if (!wish.stands || isKnown) return replaced(ledger, lesson);
      const tried = [...home.wordings, home.text].filter((wording) => wording !== wish.text).slice(-wordingsMax);
      return takenUp(ledger, anew({ ...lesson, text: wish.text, wordings: tried }), change);
    }
    default:
      return replaced(ledger, lesson);
  }
}

/** The newest again, where teachers had no room for it. */
export function broughtBack(ledger: readonly Lesson[], lesson: Lesson, change: LedgerChange): Lesson[] {
  const known = replaced(ledger, lesson);
  return takenUp(known, anew(coverOf(lesson, known)), change);
}

/** Of a lesson that is learned from the beginning. */
export const noSteps = (): Pick<Lesson, 'steps' | 'stepped'> => ({ steps: 0, stepped: [] });

export const anew = (lesson: Lesson): Lesson => ({ ...lesson, measures: [], ...noSteps() });

/** Of a wish that ended: it begins where every wish begins. */
function heardAnew(lesson: Lesson, wish: Wish, batch: number): Lesson {
  const { session, turn } = wish;
  const state = Lesson_State.STATE_HEARD;
  const first = { ...lesson, state, session, firstTurn: turn, sinceBatch: batch, coveredBy: '', cameBack: false };
  return withCase({ ...anew(first), endedBy: '', supersededBy: '', cases: [] }, wish);
}

function withHint(lesson: Lesson, wish: Wish): Lesson {
  return withCase(withWording(lesson, wish.text), wish);
}

function withCase(lesson: Lesson, { turn, tenant, user }: Wish): Lesson {
  const others = lesson.cases.filter((other) => other.turn !== turn);
  return { ...lesson, cases: [...others, { turn, tenant, user }].slice(-casesMax) };
}

/** A lesson that was given keeps the words in which it was given. */
function withWording(lesson: Lesson, wording: string): Lesson {
  const wordings = [...new Set([...lesson.wordings, lesson.text, wording])].slice(0, wordingsMax + 1);
  const text = lesson.session === '' ? lesson.text : centralWording(wordings);
  return { ...lesson, text, hints: lesson.hints + 1, wordings: wordings.filter((other) => other !== text) };
}

export interface TakingUp {
  /** Which relations end an older lesson. */
  readonly ends?: readonly WishRelation[];
  /** The words of now, where the lesson is put in others. */
  readonly said?: string;
}

/** Active from now on, as the newest. The older ones of the same scope that cannot hold beside it are superseded. */
export function takenUp(
  ledger: readonly Lesson[],
  lesson: Lesson,
  { batch, relate }: LedgerChange,
  { ends = ['opposite'], said = lesson.text }: TakingUp = {},
): Lesson[] {
  const others = ledger.filter(({ id }) => id !== lesson.id);
  const ending = others.filter((other) => {
    return (
      isBeside(other, lesson) &&
      !isOver(other) &&
      [lesson.text, said].some((text) => ends.includes(relate(other.text, text)))
    );
  });
  const remaining = withEnded(others, ending, (other) => retired(other, batch, 'superseded', lesson.id));
  const state = Lesson_State.STATE_ACTIVE;
  return [...remaining, { ...lesson, state, endedBy: '', supersededBy: '', sinceBatch: batch }];
}

/** Of the same person, or both of the whole tenant. */
function isBeside(one: Lesson, other: Lesson): boolean {
  return one.scopeTenant === other.scopeTenant && one.scopeUser === other.scopeUser;
}

export type EndedBy = 'person' | 'operator' | 'superseded';

export function retired(lesson: Lesson, batch: number, endedBy: EndedBy, supersededBy = ''): Lesson {
  return {
    ...lesson,
    // What a person said of what is over is told no more.
    measures: lesson.measures.map((measure) => ({ ...measure, askedAgain: [] })),
    state: Lesson_State.STATE_RETIRED,
    endedBy,
    supersededBy,
    sinceBatch: batch,
    coveredBy: '',
    waitsFor: '',
  };
}

/** A lesson ends with all that it covers: they are one wish. */
export function withEnded(
  ledger: readonly Lesson[],
  ending: readonly Lesson[],
  ended: (lesson: Lesson) => Lesson,
): Lesson[] {
  const ids = new Set(ending.flatMap(({ id, coveredBy }) => (coveredBy === '' ? [id] : [id, coveredBy])));
  return ledger.map((lesson) => (ids.has(lesson.id) || ids.has(lesson.coveredBy) ? ended(lesson) : lesson));
}

export function replaced(ledger: readonly Lesson[], lesson: Lesson): Lesson[] {
  return ledger.map((other) => (other.id === lesson.id ? lesson : other));
}

/**
 * Of a person what ended goes first, but for an operator's word; then what is only heard, which a second session can make a lesson; then what
 * cannot be taught. What is in force goes last. Of each, the oldest. Beyond the bound of the policy the tenant that has most loses first, so that
 * nothing of one tenant crowds out another.
 */
export function bounded(ledger: readonly Lesson[]): Lesson[] {
  const inTurn = ledger.toSorted((a, b) => turnToGo(a) - turnToGo(b));
  const ofPersons = withLeft(inTurn, personOf).filter(({ left }) => left <= personLessonsMax);
  // Of a person what is learned goes last: answers follow it, and would stray unnoticed.
  const learnedLast = ofPersons
    .map(({ lesson }) => lesson)
    .toSorted((a, b) => Number(isLearned(a)) - Number(isLearned(b)));
  // In a tenant nothing in force goes for what ended or was only heard, whosever it is; of what is left, the person who has most loses first.
  const inTenant = mostFirst(learnedLast, personOf).toSorted((a, b) => turnToGo(a) - turnToGo(b));
  const leaving = mostFirst(inTenant, tenantOf);
  const kept = new Set(leaving.slice(-lessonsMax));
  return ledger.filter((lesson) => kept.has(lesson));
}

/** What was in force and had to leave the ledger for something newer. */
export function pushedOut(before: readonly Lesson[], after: readonly Lesson[]): Lesson[] {
  const kept = new Set(after.map(({ id }) => id));
  return before.filter((lesson) => isInForce(lesson) && !kept.has(lesson.id));
}

type OwnerOf = (lesson: Lesson) => string;

const tenantOf: OwnerOf = ({ scopeTenant }) => scopeTenant;
/** What holds for a whole tenant counts as one person's. */
const personOf: OwnerOf = ({ scopeTenant, scopeUser }) => `${scopeTenant}.${scopeUser}`;

/** Each as if the owner that has most lost one at a time. The order stays in what is one owner's, and among owners that have as many. */
function mostFirst(lessons: readonly Lesson[], ownerOf: OwnerOf): Lesson[] {
  return withLeft(lessons, ownerOf)
    .sort((a, b) => b.left - a.left)
    .map(({ lesson }) => lesson);
}

/** How many its owner has left when it is the next to go. */
function withLeft(lessons: readonly Lesson[], ownerOf: OwnerOf) {
  const counts = new Map<string, number>();
  const fromLast = lessons.toReversed().map((lesson) => {
    const left = (counts.get(ownerOf(lesson)) ?? 0) + 1;
    counts.set(ownerOf(lesson), left);
    return { lesson, left };
  });
  return fromLast.reverse();
}

const isLearned = ({ state }: Lesson): boolean => state === Lesson_State.STATE_LEARNED;

const goFirst = [Lesson_State.STATE_RETIRED, Lesson_State.STATE_HEARD, Lesson_State.STATE_UNTEACHABLE];

function turnToGo(lesson: Lesson): number {
  if (isInForce(lesson)) return goFirst.length + 1;
  return lesson.endedBy === 'operator' ? goFirst.length : goFirst.indexOf(lesson.state);
}
