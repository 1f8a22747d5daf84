import { Lesson_State, LessonChanged, LessonChanged_Action, type Lesson } from '@backtalk/proto/facts';
import { describe, expect, it } from 'vitest';

import { inBatch, lesson, onlyLesson, wish } from '../testing/lessons.js';
import { withChanges } from './lesson-changes.js';
import { withWishes, type Wish } from './lesson-ledger.js';

const { ACTION_ADD, ACTION_EDIT, ACTION_RETIRE, ACTION_REACTIVATE } = LessonChanged_Action;
const { STATE_ACTIVE, STATE_LEARNED, STATE_RETIRED } = Lesson_State;

const tables = lesson({ id: 'tables', text: 'From now on use tables.' });

function changed(lessons: readonly Lesson[], timeMs: number, said: Partial<LessonChanged>): Lesson[] {
  const message = LessonChanged.fromPartial({
    id: 'c1',
    tenant: 't',
    user: 'a',
    giver: 'a',
    lesson: 'tables',
    ...said,
  });
  return withChanges(lessons, [{ message, sequence: 1, timeMs }], inBatch(5));
}

function heard(lessons: readonly Lesson[], saidAtMs: number, text: string, more: Partial<Wish> = {}): Lesson[] {
  const said = wish({ turn: 'waited', session: 's2', stands: true, text, saidAtMs, ...more });
  return withWishes(lessons, [said], 'user', inBatch(6));
}

const inForce = (lessons: readonly Lesson[]) =>
  lessons.filter(({ state }) => state === STATE_ACTIVE || state === STATE_LEARNED).map(({ text }) => text);

describe('words that waited for their batch while a lesson was changed', () => {
  it.each(['From now on use tables.', 'Always use tables.'])(
    'a lesson that was retired stays so, whatever was said before it ended: %s',
    (words) => {
      const ended = changed([tables], 100, { action: ACTION_RETIRE });
      expect(onlyLesson(heard(ended, 100, words))).toMatchObject({ state: STATE_RETIRED, endedBy: 'person', hints: 1 });
      expect(onlyLesson(heard(ended, 101, words))).toMatchObject({ state: STATE_ACTIVE });
    },
  );

  it('a wording that was covered stays ended with the lesson that covered it', () => {
    const covered = lesson({ id: 'covered', text: 'Rows and columns, please.', coveredBy: 'tables' });
    const ended = changed([tables, covered], 100, { action: ACTION_RETIRE });
    expect(inForce(heard(ended, 99, covered.text))).toEqual([]);
    expect(inForce(heard(ended, 101, covered.text))).toEqual([covered.text]);
  });

  it.each(['Use at most three tables.', 'Answer in Dutch.'])(
    'an edit stands against its words of before: %s',
    (text) => {
      const one = lesson({
        id: 'tables',
        text: 'Use at most one table.',
        cases: [{ turn: 't0', tenant: 't', user: 'a' }],
      });
      const edited = changed([one], 100, { action: ACTION_EDIT, text });
      expect(inForce(edited)).toEqual([text]);
      expect(inForce(heard(edited, 99, one.text))).toEqual([text]);
      expect(inForce(heard(edited, 101, one.text))).toContain(one.text);
      // As what it was: over, with the turns that asked for it.
      expect(edited[0]).toMatchObject({
        text: one.text,
        state: STATE_RETIRED,
        supersededBy: 'tables',
        cases: one.cases,
      });
      expect(edited[0]?.id).not.toBe('tables');
    },
  );

  it('an edited lesson that ended keeps its words of before ended too', () => {
    const ended = changed([tables], 50, { action: ACTION_RETIRE });
    const edited = changed(ended, 100, { action: ACTION_EDIT, text: 'Answer in Dutch.' });
    expect(inForce(heard(edited, 40, tables.text))).toEqual([]);
  });

  it('the words of before an edit are said of the edited lesson where they ask for the same', () => {
    const edited = changed([tables], 100, { action: ACTION_EDIT, text: 'Use tables.' });
    expect(inForce(heard(edited, 101, tables.text))).toEqual(['Use tables.']);
  });

  it('a lesson that was given outlasts the opposite that was said before it', () => {
    const given = changed([], 100, { action: ACTION_ADD, text: 'Always use emojis.' });
    const after = heard(given, 99, 'Never use emojis.');
    expect(inForce(after)).toEqual(['Always use emojis.']);
    expect(after[1]).toMatchObject({ text: 'Never use emojis.', state: STATE_RETIRED, supersededBy: 'tables' });
    expect(inForce(heard(given, 101, 'Never use emojis.'))).toEqual(['Never use emojis.']);
    // It is known, and begins anew where it is said again.
    expect(inForce(heard(after, 101, 'Never use emojis.', { turn: 'again' }))).toEqual(['Never use emojis.']);
  });

  it('a lesson that was taken up again outlasts the opposite that was said before that', () => {
    const never = lesson({ id: 'never', text: 'Never use tables.' });
    const ended = { ...tables, state: STATE_RETIRED, endedBy: 'superseded', supersededBy: 'never' };
    const back = changed([ended, never], 100, { action: ACTION_REACTIVATE });
    expect(inForce(heard(back, 99, 'Never use tables.'))).toEqual([tables.text]);
    expect(inForce(heard(back, 101, 'Never use tables.'))).toEqual(['Never use tables.']);
  });

  it('the opposite of a lesson that was retired is heard, whenever it was said', () => {
    const ended = changed([tables], 100, { action: ACTION_RETIRE });
    expect(inForce(heard(ended, 99, 'Never use tables.'))).toEqual(['Never use tables.']);
  });

  it('what was said before a lesson was learned does not begin it again', () => {
    const given = changed([], 100, { action: ACTION_ADD, text: 'Use tables.' });
    const learned = given.map((one) => ({ ...one, state: STATE_LEARNED }));
    expect(onlyLesson(heard(learned, 99, 'Use tables.')).state).toBe(STATE_LEARNED);
    expect(onlyLesson(heard(learned, 101, 'Use tables.')).state).toBe(STATE_ACTIVE);
  });
});
