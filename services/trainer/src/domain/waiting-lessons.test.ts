import { inForce } from '@backtalk/kit';
import { Lesson_State, type Lesson } from '@backtalk/proto/facts';
import { describe, expect, it } from 'vitest';

import { inBatch, lesson, wish } from '../testing/lessons.js';
import { withWishes } from './lesson-ledger.js';
import { hindsightBeside } from './lessons-in-force.js';
import { withWaits } from './waiting-lessons.js';

const { STATE_ACTIVE, STATE_HEARD, STATE_LEARNED, STATE_RETIRED, STATE_UNTEACHABLE } = Lesson_State;

const named = (text: string, shape: Partial<Lesson> = {}) => lesson({ id: text, text, ...shape });
const measureOf = (progress: number) => ({ batch: 1, turns: 4, chance: 0, told: 10, own: 10 * progress, steps: 1 });
const waits = (lessons: readonly Lesson[]) => withWaits(lessons).map(({ waitsFor }) => waitsFor);

describe('lessons that merely came back', () => {
  it('lessons that came back wait for the newest of what is said to stand or was given, and are shown to no teacher until then', () => {
    const ledger = [
      named('bullets', { stands: true }),
      named('given', { session: '' }),
      named('complaint', { hints: 9 }),
      named('another', { hints: 3 }),
    ];
    expect(waits(ledger)).toEqual(['', '', 'given', 'given']);
    const shown = inForce(withWaits(ledger), { tenant: 't', user: 'a' });
    expect(shown.map(({ id }) => id)).toEqual(['bullets', 'given']);
  });

  it('lessons wait, where nothing is said to stand, for what was asked for most often, covered wordings counted', () => {
    const ledger = [
      named('once', { hints: 3 }),
      named('wish', { hints: 2 }),
      named('wording', { hints: 2, coveredBy: 'wish' }),
    ];
    expect(waits(ledger)).toEqual(['wish', '', '']);
    expect(waits([named('older', { hints: 2 }), named('newer', { hints: 2 })])).toEqual(['', 'older']);
    const covered = [named('wish', { hints: 9 }), named('once'), named('always', { stands: true, coveredBy: 'once' })];
    expect(waits(covered)).toEqual(['once', '', '']);
    expect(waits([...ledger, named('wording of once', { coveredBy: 'once' })]).at(-1)).toBe('wish');
  });

  it('a lesson that has come part of its way waits for none, however often another is asked for', () => {
    const at = (progress: number) => ({ hints: 2, measures: [measureOf(progress)] });
    const asked = named('newer', { hints: 9 });
    expect(waits([named('older', at(0.3)), asked])).toEqual(['', 'older']);
    expect(waits([named('older', at(0.2)), asked])).toEqual(['newer', '']);
    expect(waits([named('older', at(0.3)), named('always', { stands: true })])).toEqual(['', '']);
  });

  it('a lesson waits for no other person’s, and for none that is learned or ended', () => {
    const stands = { stands: true };
    const beside = [
      named('theirs', { ...stands, scopeUser: 'b' }),
      named('another tenant’s', { ...stands, scopeTenant: 'u' }),
      named('learned', { ...stands, state: STATE_LEARNED }),
      named('over', { ...stands, state: STATE_RETIRED }),
    ];
    expect(waits([...beside, named('mine')])).toEqual(['', '', '', '', '']);
    expect(waits([named('learned', { state: STATE_LEARNED }), named('always', stands)])).toEqual(['', '']);
  });

  it('what waited is heard once and no more when what it waited for is learned or given up', () => {
    const complaint = named('complaint', { waitsFor: 'wish', hints: 4, steps: 2 });
    const wording = named('wording', { waitsFor: 'wish', coveredBy: 'complaint' });
    for (const state of [STATE_LEARNED, STATE_UNTEACHABLE, STATE_RETIRED]) {
      const [, ...after] = withWaits([named('wish', { stands: true, state }), complaint, wording]);
      expect(after.map((one) => [one.state, one.waitsFor, one.coveredBy, one.steps])).toEqual([
        [STATE_HEARD, '', '', 0],
        [STATE_HEARD, '', '', 0],
      ]);
      expect(after[0]?.hints).toBe(4);
    }
    expect(withWaits([complaint]).map(({ state }) => state)).toEqual([STATE_HEARD]);
  });

  it('what waits goes on waiting for another wording of the same, and what is said to stand waits no longer', () => {
    const ledger = [
      named('wish', { stands: true, coveredBy: 'plain wish' }),
      named('plain wish'),
      named('complaint', { waitsFor: 'wish' }),
    ];
    expect(waits(ledger)).toEqual(['', '', 'plain wish']);
    const said = withWishes(
      withWaits([named('wish', { stands: true }), named('No emojis.', { waitsFor: 'wish' })]),
      [wish({ text: 'No emojis.', stands: true })],
      'user',
      inBatch(4),
    );
    expect(withWaits(said).map(({ state, waitsFor }) => [state, waitsFor])).toEqual([
      [STATE_ACTIVE, ''],
      [STATE_ACTIVE, ''],
    ]);
  });

  it('what waits is not shown to the teacher of its own turn beside what it waits for', () => {
    const lessons = withWaits([named('Bullets, always.', { stands: true }), named('Where are they?')]);
    const shown = lessons.slice(0, 1);
    expect(hindsightBeside('Where are they?', shown, lessons)).toBe('');
    expect(hindsightBeside('It is Oslo.', shown, lessons)).toBe('It is Oslo.');
    expect(hindsightBeside('Where are they?', [], lessons)).toBe('Where are they?');
  });
});

describe('a wish that stands', () => {
  it('a wish stands from the first time that it is said to, and no longer when it begins anew', () => {
    const ledger = withWishes([], [wish({ text: 'Use tables.' })], 'user', inBatch(1));
    expect(ledger[0]?.stands).toBe(false);
    const said = withWishes(ledger, [wish({ text: 'Use tables.', stands: true })], 'user', inBatch(2));
    expect(said[0]?.stands).toBe(true);
    const again = withWishes(said, [wish({ text: 'Use tables.', session: 's2' })], 'user', inBatch(3));
    expect(again[0]?.stands).toBe(true);
    const ended = said.map((one) => ({ ...one, state: STATE_RETIRED, endedBy: 'person' }));
    const anew = withWishes(ended, [wish({ text: 'Use tables.', turn: 'later' })], 'user', inBatch(4));
    expect(anew[0]).toMatchObject({ state: STATE_HEARD, stands: false });
  });
});
