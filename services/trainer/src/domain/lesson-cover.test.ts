import { Lesson_State, LessonChanged, LessonChanged_Action, type Lesson } from '@backtalk/proto/facts';
import { describe, expect, it } from 'vitest';

import { inBatch, lesson, wish } from '../testing/lessons.js';
import { compared, recurring, settledCovers, withCovers as coversOf, type WishEffects } from './lesson-cover.js';
import { withChanges } from './lesson-changes.js';
import { withWishes } from './lesson-ledger.js';
import { relateByWords } from './lexical-relation.js';

const { STATE_ACTIVE, STATE_LEARNED, STATE_HEARD, STATE_RETIRED } = Lesson_State;

/** Two wishes move the base alike as far as their texts' first letters agree. */
function effects(
  gain: (shown: string, told: string) => number = likeFirstLetter,
  matter: (told: string) => number = () => 0,
  effect: (wish: string) => number = () => 10,
): WishEffects {
  return { gain, byChance: () => 1, matter, effect };
}

function likeFirstLetter(shown: string, told: string): number {
  return shown[0] === told[0] ? 9 : 1;
}

const withCovers = (lessons: readonly Lesson[], measured: WishEffects, relate: typeof relateByWords) =>
  coversOf(lessons, [lessons.toReversed()], measured, relate);
const named = (text: string, shape: Partial<Lesson> = {}) => lesson({ id: text, text, ...shape });
const covers = (lessons: readonly Lesson[]) => Object.fromEntries(lessons.map(({ id, coveredBy }) => [id, coveredBy]));

describe('lessons that the base takes for one', () => {
  it('the one whose answers stay closest to their questions covers the others, of those that move the base as far', () => {
    const strong = (wish: string) => (wish === 'a' ? 8 : 11);
    const matter = (told: string) => ({ a: 50, 'a b': 3, 'a longer one': 7, 'a still longer one': 6.9 })[told] ?? 0;
    const ledger = ['a', 'a b', 'a longer one', 'a still longer one'].map((text) => named(text));
    const after = withCovers(ledger, effects(likeFirstLetter, matter, strong), relateByWords);
    const cover = 'a longer one';
    expect(covers(after)).toEqual({ a: cover, 'a b': cover, [cover]: '', 'a still longer one': cover });
  });

  it('one that moves the base less covers nothing, and of equals the oldest covers the others', () => {
    const measured = (strong: number) => effects(likeFirstLetter, undefined, (told) => (told === 'a' ? strong : 10));
    const weak = measured(8.9);
    const after = withCovers([named('a'), named('a longer'), named('a longest')], weak, relateByWords);
    expect(covers(after)).toEqual({ a: 'a longer', 'a longer': '', 'a longest': 'a longer' });
    const near = measured(9.1);
    expect(covers(withCovers([named('a'), named('a longer')], near, relateByWords))['a longer']).toBe('a');
  });

  it('a cover stays as long as it does about as well as the best, and no longer', () => {
    const ledger = [named('a'), named('a b', { coveredBy: 'a' }), named('a new one')];
    const matter = (own: number) => (told: string) => (told === 'a' ? own : 10);
    const stays = withCovers(ledger, effects(likeFirstLetter, matter(9.1)), relateByWords);
    expect(covers(stays)).toEqual({ a: '', 'a b': 'a', 'a new one': 'a' });
    const stepped = [{ batch: 1, before: 0 }];
    const tried = ledger.map((one) => ({ ...one, steps: 9, stepped }));
    const moved = withCovers(tried, effects(likeFirstLetter, matter(8.9)), relateByWords);
    expect(covers(moved)).toEqual({ a: 'a b', 'a b': '', 'a new one': 'a b' });
    // Its own words were tried in none of them.
    expect(moved.map(({ steps }) => steps)).toEqual([9, 0, 9]);
    expect(moved.map((one) => one.stepped.length)).toEqual([1, 0, 1]);
  });

  it('what only one direction has is no likeness, and what moves the base little is like nothing', () => {
    const oneWay = effects((shown, told) => (shown === 'a b' && told === 'a' ? 1 : 9));
    expect(covers(withCovers([named('a'), named('a b')], oneWay, relateByWords))).toEqual({ a: '', 'a b': '' });
    const faint = effects(() => 2);
    expect(covers(withCovers([named('a'), named('a b')], faint, relateByWords))).toEqual({ a: '', 'a b': '' });
  });

  it('wishes that do less than any other wish, and answers that fit another question better, have a cover all the same', () => {
    const apart = effects(
      () => -4,
      () => -7,
    );
    expect(covers(withCovers([named('a'), named('x')], apart, relateByWords))).toEqual({ a: '', x: '' });
    const astray = effects(likeFirstLetter, (told) => (told === 'a b' ? -7 : -9));
    expect(covers(withCovers([named('a'), named('a b')], astray, relateByWords))).toEqual({ a: 'a b', 'a b': '' });
  });

  it('what was not measured is like nothing', () => {
    const unknown: WishEffects = {
      gain: () => undefined,
      byChance: () => undefined,
      matter: () => undefined,
      effect: () => undefined,
    };
    expect(covers(withCovers([named('a'), named('a b')], unknown, relateByWords))).toEqual({ a: '', 'a b': '' });
  });

  it('opposite words and other people’s are never covered, whatever the base makes of them', () => {
    const ledger = [
      named('Use emojis.'),
      named('Use no emojis.'),
      named('Use emojis!', { scopeUser: 'b' }),
      named('Use emojis?', { scopeTenant: 'u' }),
    ];
    const after = withCovers(
      ledger,
      effects(() => 9),
      relateByWords,
    );
    expect(new Set(after.map(({ coveredBy }) => coveredBy))).toEqual(new Set(['']));
  });

  it('a lesson that was given keeps its words before any that was heard', () => {
    const after = withCovers([named('a given one', { session: '' }), named('a')], effects(), relateByWords);
    expect(covers(after)).toEqual({ 'a given one': '', a: 'a given one' });
  });

  it('a cover is active again when one that it covers is, and what was only heard is covered without covering', () => {
    const ledger = [named('a', { state: STATE_LEARNED }), named('a b'), named('a?', { state: STATE_HEARD })];
    const after = withCovers(ledger, effects(), relateByWords);
    expect(after.map(({ state, coveredBy }) => [state, coveredBy])).toEqual([
      [STATE_ACTIVE, ''],
      [STATE_ACTIVE, 'a'],
      [STATE_HEARD, 'a'],
    ]);
  });
});

describe('what becomes of what is covered', () => {
  const ledger = [named('Use tables.'), named('Rows and columns.', { coveredBy: 'Use tables.' }), named('Be brief.')];

  it('what is covered ends with its cover, by its person and by an opposite wish', () => {
    const message = LessonChanged.fromPartial({
      action: LessonChanged_Action.ACTION_RETIRE,
      lesson: 'Use tables.',
      tenant: 't',
      giver: 'a',
    });
    const states = (lessons: readonly Lesson[]) => lessons.slice(0, 3).map(({ state }) => state);
    const ended = withChanges(ledger, [{ message, sequence: 1, timeMs: 0 }], inBatch(4));
    expect(states(ended)).toEqual([STATE_RETIRED, STATE_RETIRED, STATE_ACTIVE]);
    const opposite = wish({ text: 'Never use tables.', stands: true });
    expect(states(withWishes(ledger, [opposite], 'user', inBatch(4)))).toEqual([
      STATE_RETIRED,
      STATE_RETIRED,
      STATE_ACTIVE,
    ]);
  });

  it('what is covered is shown again when its cover is shown no longer', () => {
    const gone = ledger.map((one) => (one.id === 'Use tables.' ? { ...one, state: STATE_RETIRED } : one));
    expect(covers(settledCovers(gone))['Rows and columns.']).toBe('');
    expect(covers(settledCovers(ledger))['Rows and columns.']).toBe('Use tables.');
  });

  it('what is covered follows its cover to another, and keeps it when others are compared', () => {
    const before = [named('a'), named('a b', { coveredBy: 'a' }), named('x'), named('x y', { coveredBy: 'x' })];
    const after = coversOf([...before, named('A', { text: 'a' })], [], effects(), relateByWords);
    expect(covers(after)).toEqual({ a: '', 'a b': 'a', x: '', 'x y': 'x', A: '' });
    const moved = [...before.map((one) => (one.id === 'a' ? { ...one, coveredBy: 'A' } : one)), named('A')];
    expect(covers(settledCovers(moved))).toMatchObject({ a: 'A', 'a b': 'A', 'x y': 'x' });
  });

  it('a correction in covered words makes a learned cover active, where nothing can be measured too', () => {
    const learned = ledger.map((one) => (one.id === 'Use tables.' ? { ...one, state: STATE_LEARNED } : one));
    expect(settledCovers(learned)[0]?.state).toBe(STATE_ACTIVE);
  });
});

describe('what is compared', () => {
  it('compares what is shown, newest first, with what was heard just now, in the scopes where something was', () => {
    const many = Array.from({ length: 20 }, (_, index) => named(`lesson ${index}`));
    const heard = [named('now', { state: STATE_HEARD }), named('before', { state: STATE_HEARD })];
    const covered = named('covered', { coveredBy: 'lesson 1' });
    const others = [named('other', { scopeUser: 'b' }), named('another', { scopeUser: 'b' })];
    const groups = compared([...many, ...others, ...heard, covered], ['now']);
    const ids = groups.map((group) => group.map(({ id }) => id));
    expect(ids).toEqual([['now', ...Array.from({ length: 11 }, (_, index) => `lesson ${19 - index}`)]]);
    const few = compared([...many.slice(0, 2), covered, ...heard], ['now'])[0]?.map(({ id }) => id);
    expect(few).toEqual(['before', 'now', 'covered', 'lesson 1', 'lesson 0']);
  });
});

describe('a wish that comes again in other words', () => {
  const heard = (text: string, session: string) =>
    named(text, { state: STATE_HEARD, session, cases: [{ turn: text, tenant: 't', user: 'a' }] });
  const { questions } = inBatch(4);
  const ids = (...group: Lesson[]) =>
    recurring([group.toReversed()], effects(), relateByWords, { questions, heard: group.map(({ text }) => text) }).map(
      ({ id }) => id,
    );

  it('a wish recurs where another session brings what does the same, and the newest wording is taken', () => {
    expect(ids(heard('a', 's1'), heard('x', 's1'), heard('a b', 's2'), heard('a c', 's3'))).toEqual(['a c']);
  });

  it('a wish does not recur of itself: one of the two was heard just now', () => {
    const group = [heard('a b', 's2'), heard('a', 's1')];
    const found = (...now: string[]) =>
      recurring([group], effects(), relateByWords, { questions, heard: now }).map(({ id }) => id);
    expect(found('x')).toEqual([]);
    expect(found('a')).toEqual(['a b']);
    expect(found('a b')).toEqual(['a b']);
  });

  it('a wish does not recur within one session, nor where it is not known which', () => {
    expect(ids(heard('a', 's1'), heard('a b', 's1'))).toEqual([]);
    expect(ids(heard('a', ''), heard('a b', 's2'))).toEqual([]);
  });

  it('a wish does not recur where a lesson asks for it already, nor where the base does not understand it', () => {
    expect(ids(named('a lesson'), heard('a', 's1'), heard('a b', 's2'))).toEqual([]);
    const faint = effects(() => 2);
    expect(
      recurring([[heard('a', 's1'), heard('a b', 's2')]], faint, relateByWords, { questions, heard: ['a b'] }),
    ).toEqual([]);
  });

  it('a wish does not recur where the same was asked: a fact returns with its question', () => {
    const asked = new Map(['a', 'a b', 'a c'].map((turn) => [turn, 'What is the capital of Norway?']));
    const facts = [heard('a', 's1'), heard('a b', 's2'), heard('a c', 's3')];
    expect(recurring([facts], effects(), relateByWords, { questions: asked, heard: ['a c'] })).toEqual([]);
    const elsewhere = new Map([...asked, ['a b', 'How do I bake bread?']]);
    expect(
      recurring([facts], effects(), relateByWords, { questions: elsewhere, heard: ['a', 'a b', 'a c'] }).map(
        ({ id }) => id,
      ),
    ).toEqual(['a']);
  });

  it('a wish is compared with a few that were heard before, after all that is shown', () => {
    const before = Array.from({ length: 6 }, (_, index) => heard(`before ${index}`, 's1'));
    const [group] = compared([...before, named('shown'), heard('now', 's2')], ['now']);
    expect(group?.map(({ id }) => id)).toEqual(['now', 'shown', 'before 5', 'before 4', 'before 3', 'before 2']);
  });
});
