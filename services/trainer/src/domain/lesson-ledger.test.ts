import { Lesson_State, type Lesson } from '@backtalk/proto/facts';
import { describe, expect, it } from 'vitest';

import { inBatch, lesson, onlyLesson, wish } from '../testing/lessons.js';
import { askedTurns, bounded, withWishes, type Wish } from './lesson-ledger.js';
import { relateByWords } from './lexical-relation.js';

const { STATE_HEARD, STATE_ACTIVE, STATE_LEARNED, STATE_RETIRED, STATE_UNTEACHABLE } = Lesson_State;

function heard(lessons: readonly Lesson[], wishes: readonly Wish[], scope: 'user' | 'policy' = 'user'): Lesson[] {
  return withWishes(lessons, wishes, scope, inBatch(7));
}

const states = (lessons: readonly Lesson[]) => lessons.map(({ text, state }) => [text, state]);

describe('when a wish becomes a lesson', () => {
  it('no lesson is made of what is heard in one session, however often', () => {
    const once = heard([], [wish({ text: 'The capital is Oslo.' })]);
    expect(onlyLesson(once)).toMatchObject({ state: STATE_HEARD, hints: 1, session: 's1', sinceBatch: 7 });
    const again = heard(once, [wish({ text: 'The capital is Oslo!', turn: 't2' })]);
    expect(onlyLesson(again)).toMatchObject({ state: STATE_HEARD, hints: 2 });
  });

  it('makes a lesson of what a second session brings again', () => {
    const first = heard([], [wish({ text: 'Use tables.' })]);
    const second = heard(first, [wish({ text: 'Tables, please!', session: 's2', turn: 't2' })]);
    expect(onlyLesson(second)).toMatchObject({ state: STATE_ACTIVE, hints: 2, wordings: ['Use tables.'] });
  });

  it('no lesson is made of what other sessions bring again with the same question, as they do a fact', () => {
    const asked = new Map([
      ['t1', 'What is the capital of Norway?'],
      ['t2', 'Capital of Norway?'],
      ['t3', 'How do I bake bread?'],
    ]);
    const said = (turn: string, session: string) => wish({ text: 'It is Oslo.', turn, session });
    const twice = withWishes([], [said('t1', 's1'), said('t2', 's2')], 'user', inBatch(7, asked));
    expect(onlyLesson(twice)).toMatchObject({ state: STATE_HEARD, hints: 2 });
    expect(onlyLesson(withWishes(twice, [said('t4', 's3')], 'user', inBatch(8, asked))).state).toBe(STATE_HEARD);
    expect(onlyLesson(withWishes(twice, [said('t3', 's3')], 'user', inBatch(8, asked))).state).toBe(STATE_ACTIVE);
  });

  it('reads the questions of wishes, and of what was heard before in like words', () => {
    const before = heard([], [wish({ text: 'Use tables.', turn: 't1' }), wish({ text: 'It is Oslo.', turn: 't2' })]);
    const turns = askedTurns(before, [wish({ text: 'Tables, please!', turn: 't3' })], 'user', relateByWords);
    expect(turns.map(({ turn }) => turn)).toEqual(['t3', 't1']);
  });

  it('takes an unknown session for the same one', () => {
    const first = heard([], [wish({ text: 'Use tables.', session: '' })]);
    expect(onlyLesson(heard(first, [wish({ text: 'Use tables.', turn: 't2' })])).state).toBe(STATE_HEARD);
    const named = heard([], [wish({ text: 'Use tables.' })]);
    expect(onlyLesson(heard(named, [wish({ text: 'Use tables.', session: '', turn: 't2' })])).state).toBe(STATE_HEARD);
  });

  it('makes a lesson at once of what is said to stand, also where it was heard before', () => {
    const stands = wish({ text: 'Always use tables.', stands: true });
    expect(onlyLesson(heard([], [stands])).state).toBe(STATE_ACTIVE);
    expect(onlyLesson(heard(heard([], [wish({ text: 'Use tables.' })]), [stands])).state).toBe(STATE_ACTIVE);
  });

  it('keeps wishes of two people and of two tenants apart, whatever the scope is and whatever people are called', () => {
    const mine = wish({ text: 'Use tables.' });
    const otherUser = wish({ text: 'Use tables.', user: 'b', session: 's2', turn: 't2' });
    const otherTenant = wish({ text: 'Use tables.', tenant: 'other', session: 's3', turn: 't3' });
    expect(heard([], [mine, otherUser, otherTenant]).map(({ state }) => state)).toEqual(Array(3).fill(STATE_HEARD));
    const widened = heard([], [mine, otherUser, otherTenant], 'policy');
    expect(widened.map(({ scopeTenant, state }) => [scopeTenant, state])).toEqual([
      ['t', STATE_ACTIVE],
      ['other', STATE_HEARD],
    ]);
  });
});

describe('cases of a lesson', () => {
  const turnsOf = ({ cases }: Lesson) => cases.map(({ turn, tenant, user }) => `${tenant}.${user}.${turn}`);

  it('a lesson keeps the turns of its newest corrections, each once, whoever said them', () => {
    const stands = wish({ text: 'Use tables.', turn: 't0', stands: true });
    const first = heard([], [stands, stands, wish({ text: 'Use tables.', turn: 't1', user: 'b' })], 'policy');
    expect(turnsOf(onlyLesson(first))).toEqual(['t.a.t0', 't.b.t1']);
    const many = Array.from({ length: 9 }, (_, n) => wish({ text: 'Use tables.', turn: `t${n + 2}` }));
    expect(onlyLesson(heard(first, many, 'policy')).cases.map(({ turn }) => turn)).toEqual(
      [3, 4, 5, 6, 7, 8, 9, 10].map((n) => `t${n}`),
    );
  });

  it('a lesson that ended and is heard anew has its new turn alone for a case', () => {
    const ended = { ...lesson({ text: 'Use tables.' }), state: STATE_RETIRED, endedBy: 'person' };
    const before = { ...ended, cases: [{ turn: 't0', tenant: 't', user: 'a' }] };
    expect(turnsOf(onlyLesson(heard([before], [wish({ text: 'Use tables.', turn: 't1' })])))).toEqual(['t.a.t1']);
  });
});

describe('a change of mind', () => {
  const older = lesson({ text: 'Use emojis.', id: 'older' });

  it.each([STATE_ACTIVE, STATE_LEARNED, STATE_HEARD, STATE_UNTEACHABLE])(
    'ends an older opposite lesson in state %s, visibly',
    (state) => {
      const [before, after] = heard([{ ...older, state }], [wish({ text: "Don't ever use emojis.", stands: true })]);
      expect(after).toMatchObject({ text: "Don't ever use emojis.", state: STATE_ACTIVE });
      const ended = { state: STATE_RETIRED, endedBy: 'superseded', supersededBy: after?.id, sinceBatch: 7 };
      expect(before).toMatchObject({ id: 'older', ...ended });
    },
  );

  it('ends nothing while the opposite is only heard', () => {
    expect(states(heard([older], [wish({ text: 'No emojis.' })]))).toEqual([
      ['Use emojis.', STATE_ACTIVE],
      ['No emojis.', STATE_HEARD],
    ]);
  });

  it('ends nothing of another person, another tenant or the whole tenant', () => {
    const others = [
      lesson({ id: 'b', scopeUser: 'b' }),
      lesson({ id: 'c', scopeTenant: 'other' }),
      lesson({ id: 'd', scopeUser: '' }),
    ];
    const after = heard(others, [wish({ text: 'Always answer in German.', stands: true })]);
    expect(after.slice(0, 3)).toEqual(others);
  });

  it.each([STATE_ACTIVE, STATE_LEARNED])(
    'changes nothing of a lesson in state %s that holds for the whole tenant',
    (state) => {
      const shared = [
        lesson({ id: 'never', text: 'Never use emojis.', scopeUser: '', session: '', state }),
        lesson({ id: 'other', text: 'Begin with a title.', scopeUser: '' }),
      ];
      for (const text of ['Never ever use emojis.', 'Never use emojis.'])
        expect(heard(shared, [wish({ text, stands: true })])).toEqual(shared);
    },
  );

  it('begins a lesson of the person’s own where that of the whole tenant has ended, and ends none of the tenant’s', () => {
    const never = lesson({ id: 'never', text: 'Never use emojis.', scopeUser: '', state: STATE_RETIRED });
    const other = lesson({ id: 'other', text: 'Use emojis.', scopeUser: '' });
    for (const endedBy of ['superseded', 'operator']) {
      const before = [{ ...never, endedBy }, other];
      const after = heard(before, [wish({ text: never.text, stands: true })]);
      expect(after.slice(0, 2)).toEqual(before);
      expect(after[2]).toMatchObject({ text: never.text, scopeUser: 'a', state: STATE_ACTIVE });
    }
  });

  it('takes up what was superseded once it is said to stand again, as the newest, and ends the other', () => {
    const changed = heard([older], [wish({ text: 'Never use emojis.', stands: true })]);
    const back = heard(changed, [wish({ text: 'Use emojis.', stands: true, turn: 't9' })]);
    expect(states(back)).toEqual([
      ['Never use emojis.', STATE_RETIRED],
      ['Use emojis.', STATE_ACTIVE],
    ]);
    expect(back[1]).toMatchObject({ id: 'older', endedBy: '', supersededBy: '', measures: [], steps: 0 });
  });

  it('ends what its words of now cannot stand beside, whatever words it is put in', () => {
    const home = lesson({ id: 'home', text: 'Never use emojis.', state: STATE_RETIRED, session: '' });
    const relate = (a: string, b: string) => {
      if (![a, b].includes('No small pictures.')) return 'different';
      return [a, b].includes('Use emojis.') ? 'opposite' : 'same';
    };
    const again = wish({ text: 'No small pictures.', stands: true });
    expect(states(withWishes([older, home], [again], 'user', { ...inBatch(7), relate }))).toEqual([
      ['Use emojis.', STATE_RETIRED],
      ['Never use emojis.', STATE_ACTIVE],
    ]);
  });

  it('begins anew with a wish that its person had ended, and leaves alone what an operator ended', () => {
    const ended = (endedBy: string) => lesson({ text: 'Use tables.', state: STATE_RETIRED, endedBy, session: 's0' });
    const again = wish({ text: 'Use tables.', session: 's5', turn: 't5' });
    expect(onlyLesson(heard([ended('person')], [again]))).toMatchObject({
      state: STATE_HEARD,
      session: 's5',
      endedBy: '',
    });
    const stands = { ...again, stands: true };
    expect(onlyLesson(heard([ended('person')], [stands])).state).toBe(STATE_ACTIVE);
    expect(heard([ended('operator')], [stands])).toEqual([ended('operator')]);
  });
});

describe('a correction that returns', () => {
  it('takes a learned lesson up again, with all that was measured of it', () => {
    const measures = [
      { batch: 3, turns: 4, chance: -9, told: 9, own: 8, steps: 2, questions: 0, hidden: false, askedAgain: [] },
    ];
    const learned = lesson({ text: 'Use tables.', state: STATE_LEARNED, measures, steps: 2 });
    const again = onlyLesson(heard([learned], [wish({ text: 'Use tables!', session: 's2' })]));
    expect(again).toMatchObject({ id: learned.id, state: STATE_ACTIVE, measures, steps: 2, sinceBatch: 7 });
  });

  it.each([STATE_ACTIVE, STATE_LEARNED])(
    'a lesson in state %s that teachers have no room for is the newest again once it is said to stand again',
    (state) => {
      const old = lesson({ id: 'old', text: 'Use tables.', state, steps: 8 });
      const newer = Array.from({ length: 12 }, (_, n) => lesson({ id: `n${n}`, text: 'x'.repeat(n + 1) }));
      const again = wish({ text: 'Use tables.', stands: true });
      expect(heard([old, ...newer], [again]).at(-1)).toMatchObject({
        id: 'old',
        state: STATE_ACTIVE,
        steps: 0,
        hints: 1,
      });
      expect(heard([old, ...newer.slice(1)], [again])[0]).toMatchObject({ id: 'old', steps: 8 });
      expect(heard([old, ...newer], [{ ...again, stands: false }])[0]).toMatchObject({ id: 'old', steps: 8 });
    },
  );

  it('a lesson that was found not to be teachable is tried again in other words that stand', () => {
    const measures = [
      { batch: 3, turns: 4, chance: -9, told: 9, own: -9, steps: 8, questions: 0, hidden: false, askedAgain: [] },
    ];
    const wordings = Array.from({ length: 16 }, (_, at) => `Use tables for numbers, ${at} times.`);
    const shape = {
      text: 'Always use tables for numbers, please.',
      state: STATE_UNTEACHABLE,
      measures,
      steps: 8,
      wordings,
    };
    const other = wish({ text: 'Use tables for numbers.', stands: true });
    const again = onlyLesson(heard([lesson(shape)], [other]));
    expect(again).toMatchObject({ state: STATE_ACTIVE, text: other.text, measures: [], steps: 0, sinceBatch: 7 });
    const given = onlyLesson(heard([{ ...again, state: STATE_UNTEACHABLE }], [{ ...other, turn: 'later' }]));
    expect(given.state).toBe(STATE_UNTEACHABLE);
    expect(onlyLesson(heard([lesson(shape)], [{ ...other, stands: false }])).state).toBe(STATE_UNTEACHABLE);
  });

  it('the same words make no lesson teachable that was found not to be', () => {
    const given = lesson({ text: 'Use tables.', state: STATE_UNTEACHABLE, hints: 3 });
    expect(onlyLesson(heard([given], [wish({ text: 'Use tables.', stands: true })]))).toMatchObject({
      state: STATE_UNTEACHABLE,
      hints: 4,
    });
  });

  it('changes the words of a lesson that was heard, and never those of one that was given', () => {
    const said = ['Use tables for numbers.', 'Always use tables for numbers.', 'Tables for numbers!'];
    const wishes = said.map((text, n) => wish({ text, stands: true, turn: `t${n}` }));
    expect(onlyLesson(heard([], wishes)).text).toBe('Use tables for numbers.');
    const given = lesson({ text: 'Numbers: tables.', session: '' });
    expect(onlyLesson(heard([given], wishes))).toMatchObject({ text: 'Numbers: tables.', hints: 3, wordings: said });
  });
});

describe('the bound of the ledger', () => {
  const letters = (n: number): string => [...String(n)].map((digit) => 'abcdefghij'[Number(digit)]).join('');
  const many = (count: number, user = 'a') =>
    Array.from({ length: count }, (_, n) => wish({ text: `Mention ${letters(n)}zz`, user, turn: `${user}${n}` }));

  it('forgets the oldest of what a person was only heard to say, and keeps what is in force', () => {
    const kept = [lesson({ id: 'active' }), lesson({ id: 'learned', text: 'Use tables.', state: STATE_LEARNED })];
    const lessons = heard(kept, many(70));
    expect(lessons).toHaveLength(64);
    expect(lessons.slice(0, 3).map(({ id, text }) => [id.slice(0, 7), text])).toEqual([
      ['active', 'Answer in French.'],
      ['learned', 'Use tables.'],
      ['lesson_', 'Mention izz'],
    ]);
  });

  it('forgets what ended before what was only heard, which a second session may bring again', () => {
    const ended = Array.from({ length: 63 }, (_, n) =>
      lesson({
        id: `ended${n}`,
        text: `Mention ${letters(n)}yy`,
        state: STATE_RETIRED,
        endedBy: n === 0 ? 'operator' : 'person',
      }),
    );
    const ids = heard([...ended, lesson({ id: 'active' })], many(2)).map(({ id }) => id.slice(0, 7));
    expect(ids).toHaveLength(64);
    expect(ids.filter((id) => id === 'lesson_')).toHaveLength(2);
    expect(ids.slice(0, 2)).toEqual(['ended0', 'ended3']);
  });

  it('holds so many lessons and no more, whosever they are', () => {
    const lessons = Array.from({ length: 2_100 }, (_, n) => lesson({ id: `l${n}`, scopeUser: `u${n}` }));
    expect(bounded(lessons)).toEqual(lessons.slice(-2_048));
  });

  const each = (count: number, user: (n: number) => string, shape: Partial<Lesson> = {}) =>
    Array.from({ length: count }, (_, n) => {
      const scopeUser = user(n);
      return lesson({ ...shape, id: `${shape.scopeTenant ?? 't'}${scopeUser}${n}`, scopeUser });
    });
  const gone = (lessons: readonly Lesson[]) => {
    const kept = new Set(bounded(lessons));
    return lessons.filter((one) => !kept.has(one)).map(({ id }) => id);
  };

  it('lessons for invented people of one tenant push out none of another', () => {
    const learned = each(5, () => 'a', { state: STATE_LEARNED });
    const heardOnce = each(1, () => 'b', { state: STATE_HEARD });
    const invented = each(2_048, (n) => `u${n % 32}`, { scopeTenant: 'other' });
    const first = invented.slice(0, 6).map(({ id }) => id);
    expect(gone([...learned, ...heardOnce, ...invented])).toEqual(first);
  });

  it('tenants that have as many lose one after the other, each its oldest', () => {
    const lessons = [...each(1_025, (n) => `u${n}`), ...each(1_025, (n) => `u${n}`, { scopeTenant: 'other' })];
    expect(gone(lessons)).toEqual(['tu00', 'otheru00']);
  });

  it('the person who has most of a tenant loses first', () => {
    expect(gone([...each(2_046, (n) => `u${n}`), ...each(4, () => 'a')])).toEqual(['ta0', 'ta1']);
  });

  it('a tenant loses what ended of any person before what is in force of the one who has most', () => {
    const most = each(64, () => 'a');
    const others = each(1_986, (n) => `u${n}`, { state: STATE_RETIRED, endedBy: 'person' });
    expect(gone([...most, ...others])).toEqual(['tu00', 'tu11']);
  });

  it('a person who has most loses what ended, then what was heard, what is active, and what is learned last', () => {
    const states = [STATE_LEARNED, STATE_ACTIVE, STATE_HEARD, STATE_RETIRED];
    const most = states.map((state) => lesson({ id: Lesson_State[state], state }));
    const beside = (others: number) => gone([...most, ...each(others, (n) => `u${n}`)]);
    expect(beside(2_045)).toEqual(['STATE_RETIRED']);
    expect(beside(2_046)).toEqual(['STATE_HEARD', 'STATE_RETIRED']);
    expect(beside(2_047)).toEqual(['STATE_ACTIVE', 'STATE_HEARD', 'STATE_RETIRED']);
  });

  it('a person who has learned as much as is held can be taught more, in place of the oldest', () => {
    const learned = each(64, () => 'a', { state: STATE_LEARNED });
    expect(gone([...learned, lesson({ id: 'new' })])).toEqual(['ta0']);
  });

  it('no person crowds out another', () => {
    expect(
      heard(
        many(3, 'b').reduce<Lesson[]>((at, said) => heard(at, [said]), []),
        many(200),
      ),
    ).toHaveLength(67);
  });
});
