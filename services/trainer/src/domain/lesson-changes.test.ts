import { Lesson_State, LessonChanged, LessonChanged_Action, type Lesson } from '@backtalk/proto/facts';
import { describe, expect, it } from 'vitest';

import { inBatch, lesson, onlyLesson } from '../testing/lessons.js';
import { wishesIn, withChanges } from './lesson-changes.js';

const { ACTION_ADD, ACTION_EDIT, ACTION_RETIRE, ACTION_REACTIVATE } = LessonChanged_Action;
const { STATE_ACTIVE, STATE_LEARNED, STATE_RETIRED, STATE_UNTEACHABLE } = Lesson_State;

function changed(lessons: readonly Lesson[], ...said: Partial<LessonChanged>[]): Lesson[] {
  const plain = { tenant: 't', user: 'a', giver: 'a', lesson: 'l1' };
  const changes = said.map((one, n) => ({
    message: LessonChanged.fromPartial({ ...plain, ...one }),
    sequence: n + 1,
    timeMs: 0,
  }));
  return withChanges(lessons, changes, inBatch(9));
}

const askedAgain = [{ question: 'Why?', before: 'So.', after: 'so.' }];
const measures = [
  { batch: 3, turns: 4, chance: -9, told: 9, own: 8, steps: 2, questions: 0, hidden: false, askedAgain },
];
const stepped = [{ batch: 2, before: 0 }];
const french = lesson({ id: 'l1', measures, steps: 2, stepped, wordings: ['French!'] });

describe('what is said of lessons in so many words', () => {
  it('a lesson that is given is active at once, once', () => {
    const said = { action: ACTION_ADD, lesson: 'new', text: ' Use\ntables. ' };
    expect(onlyLesson(changed([], said, said))).toMatchObject({
      id: 'new',
      text: 'Use tables.',
      state: STATE_ACTIVE,
      scopeTenant: 't',
      scopeUser: 'a',
      hints: 0,
      sinceBatch: 9,
    });
    expect(onlyLesson(changed([], { ...said, user: '' })).scopeUser).toBe('');
    const ended = changed([], said, { action: ACTION_RETIRE, lesson: 'new' }, said);
    expect(onlyLesson(ended).state).toBe(STATE_RETIRED);
  });

  it('a lesson that is given ends what asks for the same or the opposite, in its own scope', () => {
    const others = [french, lesson({ id: 'l2', text: 'Use tables.' }), lesson({ id: 'b', scopeUser: 'b' })];
    const after = changed(others, { action: ACTION_ADD, lesson: 'new', text: 'Reply in German.' });
    expect(after.map(({ id, state, supersededBy }) => [id, state, supersededBy])).toEqual([
      ['l1', STATE_RETIRED, 'new'],
      ['l2', STATE_ACTIVE, ''],
      ['b', STATE_ACTIVE, ''],
      ['new', STATE_ACTIVE, ''],
    ]);
  });

  it('a lesson that is edited is to be learned anew, in the words that were given', () => {
    const learned = { ...french, state: STATE_LEARNED, cases: [{ turn: 't0', tenant: 't', user: 'a' }] };
    const [before, after] = changed([learned], { action: ACTION_EDIT, text: 'In Dutch.' });
    expect(before).toMatchObject({
      text: french.text,
      state: STATE_RETIRED,
      endedBy: 'superseded',
      supersededBy: 'l1',
    });
    // Corrections that asked for other words are no cases of these.
    expect(after?.cases).toEqual([]);
    expect(after).toMatchObject({
      id: 'l1',
      text: 'In Dutch.',
      state: STATE_ACTIVE,
      wordings: [],
      measures: [],
      steps: 0,
      // Steps in other words do not come back when their version is burned.
      stepped: [],
      session: '',
    });
    const ended = { ...french, state: STATE_RETIRED, endedBy: 'person' };
    expect(changed([ended], { action: ACTION_EDIT, text: 'In Dutch.' })[1]).toMatchObject({
      id: 'l1',
      text: 'In Dutch.',
      state: STATE_RETIRED,
    });
  });

  it('a lesson is retired by its person or by an operator, and taken up again', () => {
    const [ended] = changed([french], { action: ACTION_RETIRE });
    expect(ended).toMatchObject({ state: STATE_RETIRED, endedBy: 'person', sinceBatch: 9 });
    expect(ended?.measures).toMatchObject([{ batch: 3, askedAgain: [] }]);
    expect(onlyLesson(changed([french], { action: ACTION_RETIRE, giver: '' })).endedBy).toBe('operator');
    for (const state of [STATE_RETIRED, STATE_UNTEACHABLE, STATE_LEARNED])
      expect(onlyLesson(changed([{ ...french, state, endedBy: 'x' }], { action: ACTION_REACTIVATE }))).toMatchObject({
        state: STATE_ACTIVE,
        endedBy: '',
        measures: [],
        steps: 0,
        stepped: [],
      });
  });

  it('a lesson that is taken up again ends what asks for the same or the opposite, so that it stands once', () => {
    const ended = { ...french, state: STATE_RETIRED, endedBy: 'superseded', supersededBy: 'l2' };
    for (const text of [french.text, 'Answer in German.']) {
      const after = changed([ended, lesson({ id: 'l2', text })], { action: ACTION_REACTIVATE });
      expect(after.map(({ id, state, supersededBy }) => [id, state, supersededBy])).toEqual([
        ['l2', STATE_RETIRED, 'l1'],
        ['l1', STATE_ACTIVE, ''],
      ]);
    }
  });

  it('a lesson that teachers have no room for is the newest once it is taken up again', () => {
    const newer = Array.from({ length: 12 }, (_, n) => lesson({ id: `n${n}`, text: 'x'.repeat(n + 1) }));
    const again = { action: ACTION_REACTIVATE };
    expect(changed([french, ...newer], again).at(-1)).toMatchObject({
      id: 'l1',
      steps: 0,
      measures: [],
      sinceBatch: 9,
    });
    expect(changed([french, ...newer.slice(1)], again)[0]).toEqual(french);
    const covered = lesson({ id: 'l1', text: 'In French!', coveredBy: 'cover' });
    const both = changed([lesson({ id: 'cover', steps: 3 }), covered, ...newer], again);
    expect(both.at(-1)).toMatchObject({ id: 'cover', steps: 0 });
    expect(both[0]).toEqual(covered);
  });

  it('what an edited lesson covered ends with the words that it asked for the same as', () => {
    const brief = lesson({ id: 'l2', text: 'Keep it brief.', coveredBy: 'l1', measures, steps: 2, stepped });
    const covers = (text: string) =>
      changed([french, brief], { action: ACTION_EDIT, text }).find(({ id }) => id === 'l2');
    expect(covers('In Dutch.')).toMatchObject({ state: STATE_RETIRED, coveredBy: '', supersededBy: 'l1' });
    expect(covers(french.text)).toEqual(brief);
  });

  it('changes nothing of another tenant, and nothing that is gone', () => {
    for (const action of [ACTION_EDIT, ACTION_RETIRE, ACTION_REACTIVATE]) {
      expect(changed([french], { action, tenant: 'other', text: 'x' })).toEqual([french]);
      expect(changed([french], { action, lesson: 'gone', text: 'x' })).toEqual([french]);
    }
  });
});

it('what changes take up is said for those whom it will hold for', () => {
  const said = (change: Partial<LessonChanged>) => ({
    message: LessonChanged.fromPartial({ tenant: 't', user: 'b', lesson: 'l1', ...change }),
    sequence: 1,
    timeMs: 0,
  });
  const changes = [
    said({ action: ACTION_ADD, lesson: 'new', text: ' Use\ntables. ' }),
    said({ action: ACTION_EDIT, text: 'In Dutch.' }),
    said({ action: ACTION_REACTIVATE }),
    said({ action: ACTION_RETIRE }),
    said({ action: ACTION_REACTIVATE, lesson: 'gone' }),
  ];
  expect(wishesIn([french], changes)).toEqual([
    { tenant: 't', user: 'b', text: 'Use tables.' },
    { tenant: 't', user: 'a', text: 'In Dutch.' },
    { tenant: 't', user: 'a', text: 'Answer in French.' },
  ]);
});
