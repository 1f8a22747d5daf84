import { Lesson_State } from '@backtalk/proto/facts';
import { describe, expect, it } from 'vitest';

import { lesson } from '../testing/lessons.js';
import { centralWording, lessonOf, newWishes } from './lesson-matching.js';
import { relateByWords } from './lexical-relation.js';
import type { LessonScope } from './recipe.js';

const french = lesson({ id: 'french' });
const tables = lesson({ id: 'tables', text: 'Use tables.', wordings: ['Columns, please.'] });

function found(text: string, user = 'a', lessons = [french, tables], scope: LessonScope = 'user'): string | undefined {
  return lessonOf(lessons, { text, tenant: 't', user }, relateByWords, scope)?.id;
}

describe('which lesson a wish belongs to', () => {
  it('finds the one that asks for the same, or that was said in the same words', () => {
    expect(found('In French, please.')).toBe('french');
    expect(found('Columns, please.')).toBe('tables');
    expect(found('Columns for each year.')).toBeUndefined();
    expect(found('No tables.')).toBeUndefined();
  });

  it('never finds the lesson of another person', () => {
    expect(found('In French, please.', 'b')).toBeUndefined();
  });

  it('finds what holds for the whole tenant while it is in force alone, after what goes on of the person’s own', () => {
    const all = lesson({ id: 'all', scopeUser: '' });
    const ended = lesson({ id: 'ended', state: Lesson_State.STATE_RETIRED });
    const over = { ...all, state: Lesson_State.STATE_RETIRED };
    expect(found('In French, please.', 'b', [all])).toBe('all');
    expect(found('In French, please.', 'a', [french, all])).toBe('french');
    expect(found('Answer in French.', 'a', [all, ended])).toBe('all');
    for (const state of [Lesson_State.STATE_HEARD, Lesson_State.STATE_UNTEACHABLE, Lesson_State.STATE_RETIRED])
      expect(found('Answer in French.', 'a', [{ ...all, state }])).toBeUndefined();
    expect(found('Answer in French.', 'a', [over], 'policy')).toBe('all');
  });

  it('prefers one that goes on to one that has ended, and the newer of two', () => {
    const ended = lesson({ id: 'ended', state: Lesson_State.STATE_RETIRED });
    expect(found('Answer in French.', 'a', [french, ended])).toBe('french');
    expect(found('Answer in French.', 'a', [french, lesson({ id: 'newer' })])).toBe('newer');
    expect(found('Answer in French.', 'a', [ended])).toBe('ended');
  });
});

describe('what a new wish is held against', () => {
  const said = (text: string, user = 'a', tenant = 't') => ({ text, user, tenant });
  const { STATE_RETIRED } = Lesson_State;

  it('what goes on comes before what has ended, the newest first, and what an operator ended is left out', () => {
    const lessons = [
      french,
      lesson({ text: 'Ended.', state: STATE_RETIRED, endedBy: 'person' }),
      lesson({ text: 'Taken away.', state: STATE_RETIRED, endedBy: 'operator' }),
      lesson({ text: 'Another’s.', scopeUser: 'b' }),
      tables,
    ];
    expect(newWishes(lessons, [said('Be brief.')])).toEqual([
      { text: 'Be brief.', beside: ['Use tables.', 'Answer in French.', 'Ended.'] },
    ]);
  });

  it('what was said before it in one batch comes first, of all persons where lessons hold for all', () => {
    const wishes = [said('One.'), said('Two.', 'b'), said('Three.'), said('Four.', 'a', 'elsewhere')];
    expect(newWishes([french], wishes).map(({ beside }) => beside)).toEqual([
      ['Answer in French.'],
      [],
      ['One.', 'Answer in French.'],
      [],
    ]);
    expect(newWishes([], wishes, 'policy').map(({ beside }) => beside)).toEqual([[], ['One.'], ['Two.', 'One.'], []]);
  });
});

describe('the words of a lesson', () => {
  it('a lesson’s words are those that all wordings have in common, with the least beside them', () => {
    const said = [
      'I keep saying it: metric units, whatever the recipe says.',
      'Use metric units.',
      'Use metric units in recipes.',
      'Please use metric units from now on.',
    ];
    expect(centralWording(said)).toBe('Use metric units.');
    expect(centralWording([...said].reverse())).toBe('Use metric units.');
  });

  it('a lesson’s words are the longest of equals', () => {
    expect(centralWording(['Use tables.', 'Columns, please.'])).toBe('Columns, please.');
    // Words that no space parts.
    const chinese = [
      '以后请简短回答',
      '请以后都简短回答',
      '能不能以后都简短回答我的问题，我真的很忙没有时间看长篇大论',
    ];
    expect(centralWording(chinese)).toBe('请以后都简短回答');
  });
});
