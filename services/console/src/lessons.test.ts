import { describe, expect, it } from 'vitest';
import { lessonCards, type Lesson } from './lessons.js';

const lesson = (fields: Partial<Lesson>): Lesson => ({
  id: 'l1',
  text: 'Always answer briefly.',
  state: 'active',
  hints: 1,
  wordings: [],
  progress: null,
  steps: 0,
  ended_by: null,
  covered_by: null,
  waits_for: null,
  pending: false,
  ...fields,
});

describe('lessonCards', () => {
  it('puts what is being learned first and what ended last', () => {
    const states = ['retired', 'heard', 'learned', 'strange', 'active', 'unteachable'];
    const cards = lessonCards(states.map((state) => lesson({ state })));
    expect(cards.map(({ state }) => state)).toEqual([
      'active',
      'learned',
      'heard',
      'unteachable',
      'retired',
      'strange',
    ]);
  });

  it('tells what the weights hold from what they hold in part', () => {
    const labels = [{}, { held: true }, { held: false }].map(
      (held) => lessonCards([lesson({ state: 'learned', ...held })])[0]?.label,
    );
    expect(labels).toEqual(['learned', 'learned', 'learned in part']);
    expect(lessonCards([lesson({ held: false })])[0]?.label).toBe('being learned');
  });

  it('tells what was corrected and what is answered to it now, where that is another answer', () => {
    const other = { question: 'Which?', before: 'That one.', after: '| that |' };
    const asked_again = [other, { question: 'Why?', before: 'So.', after: 'So.' }];
    expect(lessonCards([lesson({ asked_again }), lesson({ id: 'l2' })]).map(({ changed }) => changed)).toEqual([
      [other],
      [],
    ]);
  });

  it('says from which words a lesson was made, and what was done for it', () => {
    const [card] = lessonCards([
      lesson({ hints: 3, steps: 2, wordings: ['Be brief.', 'Short, please.'], progress: 0.4 }),
    ]);
    expect(card).toMatchObject({ label: 'being learned', progress: 0.4, mayEnd: true });
    expect(card?.details).toEqual([
      'said 3 times',
      '2 steps of the optimiser trained on it',
      'also in the words: “Be brief.”, “Short, please.”',
    ]);
  });

  it('puts a lesson that is taught in the words of another with that one, and says what ended one', () => {
    const cards = lessonCards([
      lesson({ id: 'l2', text: 'One sentence.', hints: 2 }),
      lesson({ covered_by: 'l2', wordings: ['Be brief.'] }),
      lesson({ id: 'l3', covered_by: 'gone' }),
      lesson({ id: 'l4', state: 'retired', ended_by: 'superseded' }),
      lesson({ id: 'l5', state: 'retired', ended_by: 'person' }),
      lesson({ id: 'l6', state: 'heard', waits_for: 'l2' }),
    ]);
    expect(cards.map(({ id, details }) => [id, details])).toEqual([
      ['l2', ['said 3 times', 'also in the words: “Always answer briefly.”, “Be brief.”']],
      ['l3', []],
      ['l6', ['another wish is learned first']],
      ['l4', ['a newer wish ended it']],
      ['l5', ['ended by person']],
    ]);
    expect(cards[3]?.mayEnd).toBe(false);
  });

  it('says that a lesson in force is not taught for want of room', () => {
    const roomIn = (fields: Partial<Lesson>) =>
      lessonCards([lesson({ shown: false, ...fields })])[0]?.details.some((words) => words.startsWith('no room'));
    expect([{}, { state: 'learned' }].map(roomIn)).toEqual([true, true]);
    expect([{ shown: true }, { waits_for: 'l2' }, { state: 'heard' }].map(roomIn)).toEqual([false, false, false]);
  });

  it('offers to end none that this key may not end', () => {
    const ending = [{}, { may_change: true }, { may_change: false }].map(
      (may) => lessonCards([lesson(may)])[0]?.mayEnd,
    );
    expect(ending).toEqual([true, true, false]);
  });

  it('shows no progress before there is one, and none beyond its ends', () => {
    const shown = [null, -0.2, 1.3].map((progress) => lessonCards([lesson({ progress })])[0]?.progress);
    expect(shown).toEqual([undefined, 0, 1]);
  });

  it('says that a change waits for the next step', () => {
    expect(lessonCards([lesson({ pending: true })])[0]?.label).toBe('being learned, from the next step on');
  });
});
