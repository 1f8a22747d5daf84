import { Lesson, Lesson_State, LessonMeasure, TurnJudged } from '@backtalk/proto/facts';
import { describe, expect, it } from 'vitest';
import { lessonsToShow, showsLessons, standingWish, withShown } from './shown-lessons.js';
import { writeMessages } from './written-messages.js';

const ann = { tenant: 't', user: 'ann' };

function lesson(id: string, more: Partial<Lesson> = {}): Lesson {
  return Lesson.fromPartial({
    id,
    text: `Wish ${id}.`,
    scopeTenant: 't',
    scopeUser: 'ann',
    state: Lesson_State.STATE_ACTIVE,
    ...more,
  });
}

const wish = (text: string, turn = `turn of ${text}`) => ({ turn, text });
const texts = (lessons: readonly Lesson[], said: readonly string[] = []) =>
  lessonsToShow(
    lessons,
    said.map((text) => wish(text)),
    ann,
  ).map(({ lesson: id, text }) => [id, text]);

describe('which lessons an answer is given with', () => {
  it('those that are being learned are shown, for their person and the whole tenant; those that the weights hold are not', () => {
    const lessons = [
      lesson('a'),
      lesson('learned', { state: Lesson_State.STATE_LEARNED }),
      lesson('retired', { state: Lesson_State.STATE_RETIRED }),
      lesson('heard', { state: Lesson_State.STATE_HEARD }),
      lesson('covered', { coveredBy: 'a' }),
      lesson('waiting', { waitsFor: 'a' }),
      lesson('bob', { scopeUser: 'bob' }),
      lesson('elsewhere', { scopeTenant: 'u' }),
      lesson('all', { scopeUser: '' }),
    ];
    expect(texts(lessons)).toEqual([
      ['a', 'Wish a.'],
      ['all', 'Wish all.'],
    ]);
  });

  it('lessons that the weights hold take no room from those that they do not', () => {
    const held = Array.from({ length: 12 }, (_, n) => lesson(`held${n}`, { state: Lesson_State.STATE_LEARNED }));
    expect(texts([lesson('a'), ...held])).toEqual([['a', 'Wish a.']]);
  });

  it('one that was learned as far as it goes is shown until the weights hold it', () => {
    const learned = (own: number) =>
      lesson('a', {
        state: Lesson_State.STATE_LEARNED,
        measures: [LessonMeasure.fromPartial({ turns: 4, chance: 0, told: 10, own })],
      });
    expect(texts([learned(1)])).toEqual([['a', 'Wish a.']]);
    expect(texts([learned(5)])).toEqual([]);
  });

  it('a standing wish is shown before a batch makes a lesson of it, and as its lesson is from then on', () => {
    expect(texts([lesson('a')], ['Always in French.'])).toEqual([
      ['a', 'Wish a.'],
      ['', 'Always in French.'],
    ]);
    const heard = { wordings: ['Always in French.'] };
    expect(texts([lesson('a', heard)], ['Always in French.'])).toEqual([['a', 'Wish a.']]);
    expect(texts([lesson('a', { ...heard, state: Lesson_State.STATE_RETIRED })], ['Always in French.'])).toEqual([]);
  });

  it('a wish whose turn made a lesson is that lesson, however it is worded since; another person’s words change nothing', () => {
    const said = [wish('Always in French.', 't1')];
    const shownFor = (more: Partial<Lesson>) => lessonsToShow([lesson('a', more)], said, ann).map(({ text }) => text);
    expect(shownFor({ text: 'En français.', cases: [{ turn: 't1', tenant: 't', user: 'ann' }] })).toEqual([
      'En français.',
    ]);
    expect(shownFor({ firstTurn: 't1' })).toEqual(['Wish a.']);
    const foreign = { scopeTenant: 'u', text: 'Always in French.', state: Lesson_State.STATE_RETIRED };
    expect(shownFor(foreign)).toEqual(['Always in French.']);
    expect(shownFor({ scopeUser: 'bob', wordings: ['Always in French.'] })).toEqual(['Always in French.']);
  });

  it('what quotes a token of a template is not shown, and of many the newest are', () => {
    expect(texts([lesson('a', { text: 'Hi <|im_end|>' })], ['<|im_start|>system'])).toEqual([]);
    const said = Array.from({ length: 20 }, (_, at) => `Always ${at}.`);
    expect(texts([lesson('a')], said)).toEqual(said.slice(-12).map((text) => ['', text]));
  });

  it('only what is said to stand is a wish beyond its turn', () => {
    const judged = (more: Partial<TurnJudged>) => TurnJudged.fromPartial({ hint: 'Always  in\nFrench.', ...more });
    expect(standingWish(judged({ stands: true, turn: 't1' }))).toEqual(wish('Always in French.', 't1'));
    expect(standingWish(judged({}))).toBeUndefined();
    expect(standingWish(judged({ stands: true, bare: true }))).toBeUndefined();
    expect(standingWish(judged({ stands: true, hint: '' }))).toBeUndefined();
    // Another person's feedback says nothing of what the turn's user wants.
    expect(standingWish(judged({ stands: true, user: 'ann', giver: 'bob' }))).toBeUndefined();
  });

  it('a request decides before the setting, and an unclear word counts as off', () => {
    expect([undefined, '', ' '].map((header) => showsLessons(true, header))).toEqual([true, true, true]);
    expect(['on', ' ON ', 'yes'].map((header) => showsLessons(false, header))).toEqual([true, true, true]);
    expect(['off', 'no', 'maybe'].map((header) => showsLessons(true, header))).toEqual([false, false, false]);
  });
});

describe('a request with lessons in it', () => {
  const shown = [
    { lesson: 'a', text: 'Be brief.' },
    { lesson: '', text: 'In French.' },
  ];

  it('lessons stand behind what the person said last, and all other messages stay as they were, byte for byte', () => {
    const messages = [
      { role: 'system', content: 'Be kind, "always".' },
      { role: 'user', content: 'Où est le café? 🙂' },
      { role: 'user', content: '<state/>' },
    ];
    const found = withShown(writeMessages(messages), 1, shown);
    expect(found?.shown).toEqual({ lessons: shown, message: 1 });
    expect(JSON.parse(Buffer.from(found?.json ?? []).toString())).toEqual([
      messages[0],
      { role: 'user', content: 'Où est le café? 🙂\n\nBe brief.\n\nIn French.' },
      messages[2],
    ]);
    for (const at of [0, 2]) {
      const alone = withShown(writeMessages(messages), at, shown);
      const others = JSON.parse(Buffer.from(alone?.json ?? []).toString()) as unknown[];
      expect(others.toSpliced(at, 1)).toEqual(messages.toSpliced(at, 1));
    }
  });

  it('nothing is shown where there is nothing to show, no person spoke, or what they said is very long', () => {
    const asked = writeMessages([{ role: 'user', content: 'Why?' }]);
    expect(withShown(asked, 0, [])).toBeUndefined();
    expect(withShown(asked, -1, shown)).toBeUndefined();
    expect(withShown(writeMessages([{ role: 'user', content: 'x'.repeat(300_000) }]), 0, shown)).toBeUndefined();
  });
});
