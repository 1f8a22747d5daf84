import { asWording, inForce, wordingCharsMax } from '@backtalk/kit';
import { BatchSample, Lesson_State } from '@backtalk/proto/facts';
import { describe, expect, it } from 'vitest';

import { lesson } from '../testing/lessons.js';
import { hindsightBeside, hintsOf } from './lessons-in-force.js';

const speaker = { tenant: 't', user: 'a' };
const of = (state: Lesson_State) => lesson({ id: state, state });

describe('lessons in force', () => {
  it('lessons in force are the active and the learned ones of the person and of the whole tenant, newest last', () => {
    const lessons = [
      of(Lesson_State.STATE_LEARNED),
      of(Lesson_State.STATE_HEARD),
      of(Lesson_State.STATE_RETIRED),
      of(Lesson_State.STATE_UNTEACHABLE),
      lesson({ id: 'tenant', scopeUser: '' }),
      lesson({ id: 'other user', scopeUser: 'b' }),
      lesson({ id: 'other tenant', scopeTenant: 'u', scopeUser: '' }),
      lesson({ id: 'no tenant', scopeTenant: '', scopeUser: '' }),
      of(Lesson_State.STATE_ACTIVE),
    ];
    expect(inForce(lessons, speaker).map(({ id }) => id)).toEqual([
      Lesson_State.STATE_LEARNED,
      'tenant',
      Lesson_State.STATE_ACTIVE,
    ]);
  });

  it('lessons in force are at most the newest twelve, and at most 1,200 characters', () => {
    const many = Array.from({ length: 20 }, (_, n) => lesson({ id: `l${n}` }));
    expect(inForce(many, speaker).map(({ id }) => id)).toEqual(many.slice(-12).map(({ id }) => id));
    const long = many.map(({ id }) => lesson({ id, text: 'x'.repeat(200) }));
    expect(inForce(long, speaker).map(({ id }) => id)).toEqual(['l14', 'l15', 'l16', 'l17', 'l18', 'l19']);
  });
});

describe('the hints of a sample', () => {
  it('hints are the sample’s lessons in the order of the ledger, then its own hindsight', () => {
    const lessons = [lesson({ id: 'x', text: 'X' }), lesson({ id: 'y', text: 'Y' }), lesson({ id: 'z', text: 'Z' })];
    const sample = BatchSample.fromPartial({ lessons: ['z', 'x'], hindsight: 'It is Oslo.' });
    expect(hintsOf({ lessons }, sample)).toEqual(['X', 'Z', 'It is Oslo.']);
    expect(hintsOf({ lessons }, BatchSample.fromPartial({}))).toEqual([]);
  });

  it('hints do not say twice what a lesson says in the same words', () => {
    const shown = [lesson({ id: 'tables', text: 'Use tables.', wordings: ['Tables, I said!'] })];
    expect(hindsightBeside('Use tables.', shown, shown)).toBe('');
    expect(hindsightBeside('Tables,\n I said!', shown, shown)).toBe('');
    const over = lesson({
      id: 'over',
      text: 'No tables.',
      state: Lesson_State.STATE_RETIRED,
      supersededBy: 'tables',
    });
    expect(hindsightBeside('No tables.', shown, [...shown, over])).toBe('');
    expect(hindsightBeside('The table is wrong.', shown, shown)).toBe('The table is wrong.');
    expect(hindsightBeside('x'.repeat(500), shown, shown)).toHaveLength(400);
  });

  it.each([
    ['Use tables. It is Oslo.', 'It is Oslo.'],
    ['It is Oslo.\nUse tables. Not Bergen!', 'It is Oslo. Not Bergen!'],
    ['It is Oslo! Use tables.', 'It is Oslo!'],
    ['Why do you never Use tables.', 'Why do you never Use tables.'],
    ['Use tables.com, not that page.', 'Use tables.com, not that page.'],
    ['It is Oslo.\nNot Bergen.', 'It is Oslo.\nNot Bergen.'],
  ])('hints are without the sentences of a lesson that is shown: %j', (hint, left) => {
    const shown = [lesson({ id: 'tables', text: 'Use tables.' })];
    expect(hindsightBeside(hint, shown, shown)).toBe(left);
  });

  it('hints do not say again what a lesson asks for in other words', () => {
    const cover = lesson({ id: 'cover', text: 'Use tables.' });
    const ledger = [cover, lesson({ id: 'covered', text: 'Rows and columns!', coveredBy: 'cover' })];
    expect(inForce(ledger, speaker)).toEqual([cover]);
    expect(hindsightBeside('Rows and columns!', [cover], ledger)).toBe('');
    expect(hindsightBeside('Rows and columns!', [], ledger)).toBe('Rows and columns!');
  });

  it('wordings are on one line as a lesson, and end with a whole word', () => {
    expect(asWording(' Use\n tables. ')).toBe('Use tables.');
    expect(asWording(`${'word '.repeat(39)}longword`)).toBe('word '.repeat(39).trim());
    expect(asWording('x'.repeat(300))).toHaveLength(wordingCharsMax);
  });
});
