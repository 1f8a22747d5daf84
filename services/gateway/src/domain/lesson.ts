// What may be said of lessons, by whom, and how a lesson is shown.
//
// In: a parsed JSON body; lessons as the trainer's newest batch has them, with the changes that it has not taken in yet.
// Out: a change as a fact, or a refusal that names the parameter; lessons as clients read them. Pure.
import {
  inForce,
  isInForce,
  isLeftOut,
  lessonProgress,
  personLessonsMax,
  progressOf,
  templateTokenIn,
  weightsHold,
  wordingCharsMax,
} from '@backtalk/kit';
import { Lesson, Lesson_State, LessonChanged_Action, type LessonChanged } from '@backtalk/proto/facts';
import { z } from 'zod';
import { gatewayErrors } from '../errors.js';
import type { Caller, Grant } from './caller.js';
import { readAs } from './read-as.js';

const states = {
  STATE_UNSPECIFIED: 'unknown',
  STATE_HEARD: 'heard',
  STATE_ACTIVE: 'active',
  STATE_LEARNED: 'learned',
  STATE_RETIRED: 'retired',
  STATE_UNTEACHABLE: 'unteachable',
  UNRECOGNIZED: 'unknown',
} as const satisfies Record<Lesson_State, string>;

const text = z
  .string('it must be a string')
  .trim()
  .min(1, 'it must not be empty')
  .max(wordingCharsMax, `it must have at most ${wordingCharsMax} characters`)
  .superRefine((value, context) => {
    const control = /\p{Cc}/u.exec(value)?.[0].codePointAt(0);
    const token = templateTokenIn(value);
    if (control !== undefined) {
      const name = `U+${control.toString(16).toUpperCase().padStart(4, '0')}`;
      context.addIssue({ code: 'custom', message: `it holds the control character ${name}: write it on one line` });
    } else if (token !== undefined)
      context.addIssue({ code: 'custom', message: `it holds ${token}, which chat templates use: leave it out` });
  });
const name = z.string('it must be a string').nullish();

const addition = z.strictObject({ text, policy: name, model: name, user: name });
const edition = z.strictObject({
  text: text.nullish(),
  state: z.enum(['active', 'retired'], 'it must be "active" or "retired"').nullish(),
  user: name,
});

export interface Addition {
  readonly text: string;
  readonly policy: { readonly param: 'policy' | 'model'; readonly name: string } | undefined;
  readonly user: string | undefined;
}

export function readAddition(body: unknown): Addition {
  const { value } = readAs(addition, body);
  const param = typeof value.policy === 'string' ? 'policy' : 'model';
  const named = value[param];
  return {
    text: value.text,
    policy: typeof named === 'string' ? { param, name: named } : undefined,
    user: value.user ?? undefined,
  };
}

/** One change at a time. */
export interface Edition {
  readonly action: LessonChanged_Action;
  readonly text: string;
  readonly user: string | undefined;
}

export function readEdition(body: unknown): Edition {
  const { value } = readAs(edition, body);
  const user = value.user ?? undefined;
  const given = { text: value.text ?? undefined, state: value.state ?? undefined };
  if (given.text !== undefined && given.state !== undefined)
    throw gatewayErrors.invalidParameter({ param: 'state', why: 'it cannot change together with the text' });
  if (given.text !== undefined) return { action: LessonChanged_Action.ACTION_EDIT, text: given.text, user };
  if (given.state === undefined) throw gatewayErrors.missingParameter({ param: 'text' });
  const { ACTION_RETIRE, ACTION_REACTIVATE } = LessonChanged_Action;
  return { action: given.state === 'retired' ? ACTION_RETIRE : ACTION_REACTIVATE, text: '', user };
}

/** Whose lessons a request is about. */
export interface LessonScope {
  readonly tenant: string;
  /** A person's keyed hash; undefined: the whole tenant, which a key speaks for that names none of its people. */
  readonly user: string | undefined;
}

export function lessonScope(caller: Caller, grant: Grant, user: string | undefined): LessonScope {
  const isAll = grant.acceptsUserField && (user === undefined || user === '');
  return { tenant: caller.tenant, user: isAll ? undefined : caller.user };
}

/** A person sees their own lessons and those of the whole tenant. */
export function isVisible({ scopeTenant, scopeUser }: Lesson, { tenant, user }: LessonScope): boolean {
  return scopeTenant === tenant && (user === undefined || scopeUser === '' || scopeUser === user);
}

/** What holds for everyone of a tenant is not one person's to change, but for the one person of a machine without keys. */
export function mayChange({ scopeUser }: Lesson, { user }: LessonScope, isKeyless: boolean): boolean {
  return user === undefined || scopeUser === user || isKeyless;
}

/** A lesson as it will be once the trainer has read what is said of it. */
export interface KnownLesson {
  readonly policy: string;
  readonly lesson: Lesson;
  readonly pending: boolean;
}

export function knownLessons(
  policy: string,
  lessons: readonly Lesson[],
  changes: readonly LessonChanged[],
): KnownLesson[] {
  const known = new Map(lessons.map((lesson) => [lesson.id, { policy, lesson, pending: false }]));
  for (const change of changes) {
    if (change.action === LessonChanged_Action.ACTION_ERASE) {
      for (const [id, { lesson }] of known)
        if (lesson.scopeTenant === change.tenant && lesson.scopeUser === change.user) known.delete(id);
      continue;
    }
    const before = known.get(change.lesson)?.lesson;
    const lesson = changed(before, change);
    if (lesson === undefined) continue;
    // What is given or taken up is the newest.
    if (isInForce(lesson)) known.delete(change.lesson);
    known.set(change.lesson, { policy, lesson, pending: true });
  }
  return [...known.values()];
}

/** What these hold of a person, or of all together, has no room for one more: the oldest in force would go for it, unsaid. */
export function isFull(lessons: readonly Lesson[], { scopeTenant, scopeUser }: LessonOwner): boolean {
  const isBeside = (one: Lesson) => one.scopeTenant === scopeTenant && one.scopeUser === scopeUser;
  return lessons.filter((one) => isBeside(one) && isInForce(one)).length >= personLessonsMax;
}

export type LessonOwner = Pick<Lesson, 'scopeTenant' | 'scopeUser'>;

/**
 * Whether a lesson is already as a change would have it: then nothing need be said.
 * @param lessons beside which it stands
 */
export function isSo(lesson: Lesson, action: LessonChanged_Action, words: string, lessons: readonly Lesson[]): boolean {
  switch (action) {
    case LessonChanged_Action.ACTION_EDIT:
      return lesson.text === words;
    case LessonChanged_Action.ACTION_RETIRE:
      return lesson.state === Lesson_State.STATE_RETIRED;
    case LessonChanged_Action.ACTION_REACTIVATE:
      return lesson.state === Lesson_State.STATE_ACTIVE && lesson.waitsFor === '' && !isLeftOut(lesson, lessons);
    default:
      return false;
  }
}

function changed(before: Lesson | undefined, change: LessonChanged): Lesson | undefined {
  const { action, text: words, lesson: id, tenant, user, giver } = change;
  const { STATE_ACTIVE, STATE_RETIRED } = Lesson_State;
  if (before === undefined) {
    if (action !== LessonChanged_Action.ACTION_ADD) return undefined;
    return Lesson.fromPartial({ id, text: words, scopeTenant: tenant, scopeUser: user, state: STATE_ACTIVE });
  }
  switch (action) {
    case LessonChanged_Action.ACTION_EDIT:
      // What was measured is of other words.
      return {
        ...before,
        text: words,
        state: before.state === STATE_RETIRED ? STATE_RETIRED : STATE_ACTIVE,
        measures: [],
        steps: 0,
      };
    case LessonChanged_Action.ACTION_RETIRE:
      return { ...before, state: STATE_RETIRED, endedBy: giver === '' ? 'operator' : 'person' };
    case LessonChanged_Action.ACTION_REACTIVATE:
      return { ...before, state: STATE_ACTIVE, endedBy: '', supersededBy: '' };
    default:
      return before;
  }
}

/** Ids of those among these that teachers are shown now: of each person theirs, of what holds for everyone what all are shown. */
export function shownNow(lessons: readonly Lesson[]): ReadonlySet<string> {
  const owners = new Map(
    lessons.map(({ scopeTenant: tenant, scopeUser: user }) => [`${tenant}.${user}`, { tenant, user }]),
  );
  const shown = [...owners.values()].flatMap((owner) =>
    inForce(lessons, owner).filter(({ scopeUser }) => scopeUser === owner.user),
  );
  return new Set(shown.map(({ id }) => id));
}

/** As clients read it. `user` is a keyed hash: it tells people apart and names none. */
export function lessonAnswer(
  { policy, lesson, pending }: KnownLesson,
  mayBeChanged: boolean,
  shown: ReadonlySet<string>,
) {
  return {
    id: lesson.id,
    object: 'lesson',
    policy,
    text: lesson.text,
    state: states[lesson.state],
    scope: lesson.scopeUser === '' ? 'tenant' : 'user',
    user: lesson.scopeUser || null,
    hints: lesson.hints,
    wordings: lesson.wordings,
    held: weightsHold(lesson),
    shown: shown.has(lesson.id),
    progress: rounded(lessonProgress(lesson)),
    measured: lesson.measures.map((measure) => ({ batch: measure.batch, progress: rounded(progressOf([measure])) })),
    asked_again: askedAgain(lesson),
    steps: lesson.steps,
    since_batch: lesson.sinceBatch,
    first_turn: lesson.firstTurn || null,
    cases: lesson.cases.length,
    ended_by: lesson.endedBy || null,
    superseded_by: lesson.supersededBy || null,
    covered_by: lesson.coveredBy || null,
    waits_for: lesson.waitsFor || null,
    may_change: mayBeChanged,
    pending,
  };
}

/** What was corrected for its sake, and what the version that was measured last answers to the same, shown nothing; nothing of what is over. */
function askedAgain({ measures, state }: Lesson) {
  const newest = state === Lesson_State.STATE_RETIRED ? undefined : measures.at(-1);
  return (newest?.askedAgain ?? []).map(({ question, before, after }) => ({
    question,
    before,
    after,
    batch: newest?.batch ?? 0,
  }));
}

/** Two digits: a few answers say no more. Null before it is measured. */
function rounded(progress: number | undefined): number | null {
  return progress === undefined ? null : Math.round(progress * 100) / 100;
}
