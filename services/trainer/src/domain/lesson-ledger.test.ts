import { Lesson_State, type BatchSample, type Lesson } from '@backtalk/proto/facts';
import { describe, expect, it } from 'vitest';

import { activeInScope, afterReport, teaches, withHints } from './lesson-ledger.js';

const shortLesson = { turn: 't1', tenant: 't', user: 'a', text: 'Answer in one short sentence.' };

function steps(lesson: Lesson, divergences: readonly number[]): Lesson {
  const sample = { turn: 't', lessons: [lesson.id] } as unknown as BatchSample;
  return divergences.reduce((at, divergence) => {
    const [next] = afterReport([at], [sample], [{ turn: 't', dropped: '', divergence, staleness: 0 }], 2);
    return next ?? at;
  }, lesson);
}

function first(lessons: readonly Lesson[]): Lesson {
  const [lesson] = lessons;
  if (lesson === undefined) throw new TypeError('no lesson');
  return lesson;
}

describe('the ledger of lessons', () => {
  it('makes one lesson of hints that say the same, taught in one wording', () => {
    const lessons = withHints(
      [],
      [shortLesson, { turn: 't2', tenant: 't', user: 'a', text: 'Please keep it to one short sentence from now on.' }],
      'user',
    );
    expect(lessons).toHaveLength(1);
    expect(first(lessons)).toMatchObject({
      hints: 2,
      text: 'Please keep it to one short sentence from now on.',
      wordings: [shortLesson.text],
      firstTurn: 't1',
      scopeUser: 'a',
    });
  });

  it('keeps lessons of two users apart, unless an operator has widened the scope', () => {
    const hints = [shortLesson, { ...shortLesson, turn: 't2', tenant: 't', user: 'b' }];
    expect(withHints([], hints, 'user')).toHaveLength(2);
    expect(withHints([], hints, 'policy')).toHaveLength(1);
    expect(activeInScope(withHints([], [shortLesson], 'user'), { tenant: 't', user: 'b' })).toEqual([]);
    expect(activeInScope(withHints([], [shortLesson], 'policy'), { tenant: 't', user: 'b' })).toHaveLength(1);
  });

  it('keeps lessons of two tenants apart, whatever the scope and whatever their users are called', () => {
    const hints = [shortLesson, { ...shortLesson, turn: 't2', tenant: 'other' }];
    for (const scope of ['user', 'policy'] as const) {
      const lessons = withHints([], hints, scope);
      expect(lessons).toHaveLength(2);
      expect(activeInScope(lessons, { tenant: 'other', user: 'a' }).map(({ firstTurn }) => firstTurn)).toEqual(['t2']);
    }
  });

  it('leaves a lesson alone after two batches running at 2 nats or less', () => {
    const lesson = first(withHints([], [shortLesson], 'user'));
    expect(steps(lesson, [9, 1.9]).state).toBe(Lesson_State.STATE_ACTIVE);
    expect(steps(lesson, [9, 1.9, 2.1, 2]).state).toBe(Lesson_State.STATE_ACTIVE);
    expect(steps(lesson, [9, 1.9, 2]).state).toBe(Lesson_State.STATE_LEARNED);
  });

  it('takes a learned lesson up again when a correction returns', () => {
    const learned = steps(first(withHints([], [shortLesson], 'user')), [1, 1]);
    expect(activeInScope([learned], { tenant: 't', user: 'a' })).toEqual([]);
    const again = first(withHints([learned], [{ turn: 't9', tenant: 't', user: 'a', text: 'Shorter!' }], 'user'));
    expect(again.state).toBe(Lesson_State.STATE_ACTIVE);
    expect(again.id).toBe(learned.id);
  });

  it('marks a lesson that has not fallen by a third in five steps, and hints for it teach no more', () => {
    const lesson = first(withHints([], [shortLesson], 'user'));
    expect(steps(lesson, [12, 11, 11, 10, 10]).state).toBe(Lesson_State.STATE_ACTIVE);
    const marked = steps(lesson, [12, 11, 11, 10, 10, 9]);
    expect(marked.state).toBe(Lesson_State.STATE_UNTEACHABLE);
    expect(teaches([marked], 'Shorter!', { tenant: 't', user: 'a' })).toBe(false);
    expect(first(withHints([marked], [{ turn: 't9', tenant: 't', user: 'a', text: 'Shorter!' }], 'user')).state).toBe(
      Lesson_State.STATE_UNTEACHABLE,
    );
  });

  it('a lesson that fell and then stays near its floor is not marked', () => {
    const lesson = first(withHints([], [shortLesson], 'user'));
    expect(steps(lesson, [12, 8, 7, 6, 5, 4, 4, 4, 4, 4, 4, 4]).state).toBe(Lesson_State.STATE_ACTIVE);
  });

  it('samples that were dropped or not taught a lesson do not measure it', () => {
    const lesson = first(withHints([], [shortLesson], 'user'));
    const sample = { turn: 't', lessons: [lesson.id] } as unknown as BatchSample;
    const other = { turn: 'u', lessons: [] } as unknown as BatchSample;
    const reports = [
      { turn: 't', dropped: 'stale', divergence: 0, staleness: 0 },
      { turn: 'u', dropped: '', divergence: 0, staleness: 0 },
    ];
    expect(first(afterReport([lesson], [sample, other], reports, 2)).divergences).toEqual([]);
  });

  it('the ledger stays bounded and never drops an active lesson', () => {
    const word = (n: number): string => [...String(n)].map((digit) => 'abcdefghij'[Number(digit)]).join('');
    const hints = Array.from({ length: 300 }, (_, n) => ({
      turn: `t${n}`,
      tenant: 't',
      user: 'a',
      text: `Mention ${word(n)}zz`,
    }));
    const lessons = withHints([], hints, 'user');
    expect(lessons).toHaveLength(300);
    const learned = lessons.map((lesson) => ({ ...lesson, state: Lesson_State.STATE_LEARNED }));
    expect(
      withHints(learned, [{ turn: 'new', tenant: 't', user: 'a', text: 'Write in French.' }], 'user'),
    ).toHaveLength(256);
  });
});
