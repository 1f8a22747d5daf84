import { describe, expect, it } from 'vitest';

import { centralWording, lessonOf, wordingCharsMax } from './lesson-matching.js';
import { withHints } from './lesson-ledger.js';
import { contentStems, likeness } from './same-hint.js';

const same = (a: string, b: string): boolean => likeness(contentStems(a), contentStems(b)) > 0;

describe('hints that say the same', () => {
  it.each([
    ['Answer in one short sentence.', 'Keep it to a single sentence, please.'],
    ['Answer in one short sentence.', 'Shorter please!'],
    ['Just one sentence next time.', 'I only want one short sentence.'],
    ['That was too long.', 'Be brief.'],
    ['Use bullet points.', 'Give me a bulleted list.'],
  ])('these hints say the same: %s = %s', (a, b) => {
    expect(same(a, b)).toBe(true);
  });

  it.each([
    ['Answer in one short sentence.', 'Answer in three sentences.'],
    ['Be brief.', 'Give more detail.'],
    ['Use bullet points.', 'Write in French.'],
    ['Answer in one short sentence.', 'Always start with a greeting.'],
  ])('these hints say something else: %s ≠ %s', (a, b) => {
    expect(same(a, b)).toBe(false);
  });

  it('a hint without content belongs nowhere', () => {
    expect(same('Please do it again.', 'Please do it again.')).toBe(false);
  });
});

describe('which lesson', () => {
  const lessons = withHints(
    [],
    [
      { turn: 't1', tenant: 't', user: 'a', text: 'Answer in one short sentence.' },
      { turn: 't2', tenant: 't', user: 'a', text: 'Write in French.' },
    ],
    'user',
  );

  it('finds the closest in the scope of the user', () => {
    expect(lessonOf(lessons, 'One sentence only.', { tenant: 't', user: 'a' })?.firstTurn).toBe('t1');
    expect(lessonOf(lessons, 'In French, please.', { tenant: 't', user: 'a' })?.firstTurn).toBe('t2');
  });

  it('never finds the lesson of another user', () => {
    expect(lessonOf(lessons, 'One sentence only.', { tenant: 't', user: 'b' })).toBeUndefined();
  });
});

describe('wording', () => {
  it('a lesson’s wording is what all wordings have in common, with the least beside it', () => {
    const said = [
      'Be briefer. Answer with one short sentence.',
      'Answer in one short sentence.',
      'Always answer me in one short sentence.',
      'Keep your answer to one short sentence.',
      'Answer in one short sentence as an answer.',
    ];
    expect(centralWording(said)).toBe('Answer in one short sentence.');
    expect(centralWording([...said].reverse())).toBe('Answer in one short sentence.');
  });

  it('a lesson’s wording is the longest of equals, up to a bound', () => {
    expect(centralWording(['Be brief.', 'Use few words.'])).toBe('Use few words.');
    expect(centralWording(['x'.repeat(wordingCharsMax + 1)])).toHaveLength(wordingCharsMax);
  });
});
