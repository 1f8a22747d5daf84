import { inForce } from '@backtalk/kit';
import { Lesson_State, LessonChanged, LessonChanged_Action, type Lesson } from '@backtalk/proto/facts';
import { describe, expect, it } from 'vitest';

import { inBatch, lesson, wish } from '../testing/lessons.js';
import { withChanges } from './lesson-changes.js';
import { withWishes } from './lesson-ledger.js';
import { hindsightBeside } from './lessons-in-force.js';
import { withWaits } from './waiting-lessons.js';

const { STATE_ACTIVE, STATE_HEARD, STATE_LEARNED, STATE_RETIRED, STATE_UNTEACHABLE } = Lesson_State;
const { ACTION_EDIT, ACTION_REACTIVATE } = LessonChanged_Action;

const standing = (text: string, shape: Partial<Lesson> = {}) => lesson({ id: text, text, ...shape });
const back = (text: string, shape: Partial<Lesson> = {}) => standing(text, { cameBack: true, ...shape });
const measured = (progress: number) => ({
  measures: [
    {
      batch: 1,
      turns: 4,
      chance: 0,
      told: 10,
      own: 10 * progress,
      steps: 1,
      questions: 0,
      hidden: false,
      askedAgain: [],
    },
  ],
});
const waits = (lessons: readonly Lesson[]) => withWaits(lessons).map(({ waitsFor }) => waitsFor);

describe('lessons that merely came back', () => {
  it('lessons that came back wait for none that teachers have no room for', () => {
    const newer = Array.from({ length: 12 }, (_, n) => standing(`n${n}`, { state: STATE_LEARNED }));
    const ledger = [standing('bullets'), ...newer, back('complaint')];
    expect(waits(ledger).at(-1)).toBe('');
    expect(waits(ledger.slice(0, -2)).at(-1)).toBe('');
    expect(waits([standing('bullets'), ...newer.slice(1), back('complaint')]).at(-1)).toBe('bullets');
    // What waits itself takes no room.
    expect(waits([back('first', { hints: 9 }), ...newer.slice(1), back('complaint')]).at(-1)).toBe('first');
    expect(waits([back('first', { hints: 9 }), ...newer, back('complaint')])).not.toContain('first');
  });

  it('lessons that came back wait for the newest that did not, and are shown to no teacher until then', () => {
    const ledger = [
      standing('bullets'),
      standing('given', { session: '' }),
      back('complaint', { hints: 9 }),
      back('another', { hints: 3 }),
    ];
    expect(waits(ledger)).toEqual(['', '', 'given', 'given']);
    const shown = inForce(withWaits(ledger), { tenant: 't', user: 'a' });
    expect(shown.map(({ id }) => id)).toEqual(['bullets', 'given']);
  });

  it('lessons wait, where all came back, for what was asked for most often, covered wordings counted', () => {
    const ledger = [
      back('once', { hints: 3 }),
      back('wish', { hints: 2 }),
      back('wording', { hints: 2, coveredBy: 'wish' }),
    ];
    expect(waits(ledger)).toEqual(['wish', '', '']);
    expect(waits([back('older', { hints: 2 }), back('newer', { hints: 2 })])).toEqual(['', 'older']);
    const covered = [back('wish', { hints: 9 }), back('once'), standing('always', { coveredBy: 'once' })];
    expect(waits(covered)).toEqual(['once', '', '']);
    const heard = standing('heard', { coveredBy: 'once', state: STATE_HEARD });
    expect(waits([back('wish', { hints: 9 }), back('once'), heard])).toEqual(['', 'wish', 'wish']);
    expect(waits([...ledger, back('wording of once', { coveredBy: 'once' })]).at(-1)).toBe('wish');
  });

  it('what others wait for stays first unless another is asked for twice as often', () => {
    const others = (hints: number) => [back('first', { hints: 3 }), back('newer', { hints, waitsFor: 'first' })];
    expect(waits(others(5))).toEqual(['', 'first']);
    expect(waits(others(6))).toEqual(['newer', '']);
  });

  it('a lesson that has come part of its way waits for none, also where a newer version shows less of it', () => {
    const asked = back('newer', { hints: 9 });
    expect(waits([back('older', measured(0.3)), asked])).toEqual(['', 'older']);
    expect(waits([back('older', measured(0.2)), asked])).toEqual(['newer', '']);
    expect(waits([back('older', measured(0.3)), standing('always')])).toEqual(['', '']);
    const fell = { measures: [...measured(0.3).measures, ...measured(0.1).measures] };
    expect(waits([back('older', fell), standing('always')])).toEqual(['', '']);
    const covering = [back('cover'), back('learned', { coveredBy: 'cover', state: STATE_LEARNED }), standing('always')];
    expect(waits(covering)).toEqual(['', '', '']);
  });

  it('a lesson that was not measured in ten steps holds up no other', () => {
    expect(waits([standing('wish', { steps: 9 }), back('other')])).toEqual(['', 'wish']);
    expect(waits([standing('wish', { steps: 10 }), back('other')])).toEqual(['', '']);
    expect(waits([standing('wish', { steps: 10, ...measured(0) }), back('other')])).toEqual(['', 'wish']);
  });

  it('a lesson waits for no other person’s, and for none that is learned or ended', () => {
    const beside = [
      standing('theirs', { scopeUser: 'b' }),
      standing('another tenant’s', { scopeTenant: 'u' }),
      standing('learned', { state: STATE_LEARNED }),
      standing('over', { state: STATE_RETIRED }),
    ];
    expect(waits([...beside, back('mine')])).toEqual(['', '', '', '', '']);
    expect(waits([back('learned', { state: STATE_LEARNED }), standing('always')])).toEqual(['', '']);
  });
});

describe('what becomes of what waits', () => {
  const complaint = back('complaint', { waitsFor: 'wish', hints: 4, steps: 2, stepped: [{ batch: 1, before: 0 }] });

  it('what waited is heard and no more when what it waited for is learned or ended', () => {
    const wording = back('wording', { waitsFor: 'wish', coveredBy: 'complaint' });
    for (const state of [STATE_LEARNED, STATE_RETIRED]) {
      const [, ...after] = withWaits([standing('wish', { state }), complaint, wording]);
      expect(after.map((one) => [one.state, one.waitsFor, one.coveredBy, one.steps, one.stepped.length])).toEqual([
        [STATE_HEARD, '', '', 0, 0],
        [STATE_HEARD, '', '', 0, 0],
      ]);
      expect(after[0]?.hints).toBe(4);
    }
  });

  it('what is said to stand while it waits stays a lesson when what it waited for is learned', () => {
    const said = { ...complaint, cameBack: false };
    expect(withWaits([standing('wish', { state: STATE_LEARNED }), said])[1]).toMatchObject({ state: STATE_ACTIVE });
  });

  it('what waited takes its turn when what it waited for cannot be taught, or is gone', () => {
    const [, after] = withWaits([standing('wish', { state: STATE_UNTEACHABLE }), complaint]);
    expect(after).toMatchObject({ state: STATE_ACTIVE, waitsFor: '' });
    expect(withWaits([complaint])).toMatchObject([{ state: STATE_ACTIVE, waitsFor: '' }]);
  });

  it('what waits goes on waiting for another wording of the same, and for what took its place', () => {
    const ledger = [standing('wish', { coveredBy: 'plain wish' }), standing('plain wish'), complaint];
    expect(waits(ledger)).toEqual(['', '', 'plain wish']);
    const over = standing('wish', { state: STATE_RETIRED, endedBy: 'superseded', supersededBy: 'anew' });
    expect(waits([over, standing('anew'), complaint])).toEqual(['', '', 'anew']);
  });

  it('what a person says to stand, edits or activates waits no longer, whatever it ends', () => {
    const ledger = withWaits([standing('Use emojis.'), back('No emojis.')]);
    expect(ledger[1]?.waitsFor).toBe('Use emojis.');
    const said = withWaits(withWishes(ledger, [wish({ text: 'No emojis.', stands: true })], 'user', inBatch(4)));
    expect(said[1]).toMatchObject({ state: STATE_ACTIVE, waitsFor: '', cameBack: false });
    const change = (action: LessonChanged_Action, text = '') => {
      const message = LessonChanged.fromPartial({ action, text, lesson: 'No emojis.', tenant: 't', giver: 'a' });
      return withWaits(withChanges(ledger, [{ message, sequence: 1, timeMs: 0 }], inBatch(4))).find(
        ({ id }) => id === 'No emojis.',
      );
    };
    expect(change(ACTION_EDIT, 'Never use emojis.')).toMatchObject({
      state: STATE_ACTIVE,
      waitsFor: '',
      cameBack: false,
    });
    expect(change(ACTION_REACTIVATE)).toMatchObject({ state: STATE_ACTIVE, waitsFor: '', cameBack: false });
  });

  it('what waits is not shown to the teacher of its own turn beside what it waits for', () => {
    const lessons = withWaits([standing('Bullets, always.'), back('Where are they?')]);
    const shown = lessons.slice(0, 1);
    expect(hindsightBeside('Where are they?', shown, lessons)).toBe('');
    expect(hindsightBeside('It is Oslo.', shown, lessons)).toBe('It is Oslo.');
    expect(hindsightBeside('Where are they?', [], lessons)).toBe('Where are they?');
  });
});

describe('how a wish became a lesson', () => {
  it('a wish came back where a second session made it a lesson, until it is said to stand', () => {
    const once = withWishes([], [wish({ text: 'Use tables.', turn: 't1' })], 'user', inBatch(1));
    expect(once[0]).toMatchObject({ state: STATE_HEARD, cameBack: false });
    const again = withWishes(once, [wish({ text: 'Use tables.', session: 's2', turn: 't2' })], 'user', inBatch(2));
    expect(again[0]).toMatchObject({ state: STATE_ACTIVE, cameBack: true });
    const more = withWishes(again, [wish({ text: 'Use tables.', session: 's3', turn: 't3' })], 'user', inBatch(3));
    expect(more[0]?.cameBack).toBe(true);
    const said = withWishes(more, [wish({ text: 'Use tables.', stands: true, turn: 't4' })], 'user', inBatch(4));
    expect(said[0]?.cameBack).toBe(false);
    const first = withWishes(once, [wish({ text: 'Use tables.', stands: true, turn: 't5' })], 'user', inBatch(2));
    expect(first[0]).toMatchObject({ state: STATE_ACTIVE, cameBack: false });
    const ended = more.map((one) => ({ ...one, state: STATE_RETIRED, endedBy: 'person' }));
    const anew = withWishes(ended, [wish({ text: 'Use tables.', turn: 't6' })], 'user', inBatch(5));
    expect(anew[0]).toMatchObject({ state: STATE_HEARD, cameBack: false });
  });
});
