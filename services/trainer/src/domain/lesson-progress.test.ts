import { BatchSample, Lesson_State, type Lesson } from '@backtalk/proto/facts';
import { describe, expect, it } from 'vitest';

import { lesson } from '../testing/lessons.js';
import { afterReport, afterVersions } from './lesson-progress.js';

const { STATE_ACTIVE, STATE_LEARNED, STATE_UNTEACHABLE, STATE_RETIRED } = Lesson_State;

const shown = (shape: Partial<BatchSample> = {}) =>
  BatchSample.fromPartial({ turn: 't', lessons: [lesson().id], ...shape });
const report = (turn: string, divergence: number, dropped = '') => ({ turn, dropped, divergence, staleness: 0 });

function measured(divergences: readonly number[], before: Partial<Lesson> = {}): Lesson {
  return divergences.reduce((at, divergence, n) => {
    const [next] = afterReport([at], { number: n + 1, samples: [shown()] }, [report('t', divergence)], 2);
    return next ?? at;
  }, lesson(before));
}

describe('what steps measure of a lesson', () => {
  it('a lesson is learned after two batches running at 2 nats or less, since the second of them', () => {
    expect(measured([9, 1.9]).state).toBe(STATE_ACTIVE);
    expect(measured([7, 1.9, 2.1, 2]).state).toBe(STATE_ACTIVE);
    expect(measured([9, 1.9, 2])).toMatchObject({ state: STATE_LEARNED, sinceBatch: 3 });
  });

  it('a lesson cannot be taught for now when it has not fallen by a third in five steps', () => {
    expect(measured([12, 11, 11, 10, 10]).state).toBe(STATE_ACTIVE);
    expect(measured([12, 11, 11, 10, 10, 9])).toMatchObject({ state: STATE_UNTEACHABLE, sinceBatch: 6 });
  });

  it('no lesson stays active because it fell once', () => {
    expect(measured([12, 7, 12, 12, 12, 12]).state).toBe(STATE_ACTIVE);
    expect(measured([12, 7, 12, 12, 12, 12, 12]).state).toBe(STATE_UNTEACHABLE);
  });

  it('a lesson is learned as far as it goes when it has fallen well and falls no more', () => {
    expect(measured([12, 8, 7, 6, 5, 4, 4, 4]).state).toBe(STATE_ACTIVE);
    expect(measured([12, 8, 7, 6, 5, 4, 4, 4, 4, 4]).state).toBe(STATE_LEARNED);
  });

  it('a lesson is learned when it is far below where it was and falls no more', () => {
    expect(measured([20, 18, 5, 4.5]).state).toBe(STATE_LEARNED);
    expect(measured([20, 18, 5, 3.9]).state).toBe(STATE_ACTIVE);
    expect(measured([20, 18, 6, 5.5]).state).toBe(STATE_ACTIVE);
  });

  it('a lesson is measured by samples that were taught it, were trained, and were shown nothing beside lessons', () => {
    const samples = [
      shown({ turn: 'a' }),
      shown({ turn: 'b' }),
      shown({ turn: 'c', lessons: [] }),
      shown({ turn: 'd', hindsight: 'Oslo.' }),
    ];
    const reports = [report('a', 8), report('b', 0, 'stale'), report('c', 1), report('d', 30)];
    expect(afterReport([lesson()], { number: 1, samples }, reports, 2)[0]?.divergences).toEqual([8]);
    expect(afterReport([lesson()], { number: 1, samples: samples.slice(2) }, reports, 2)[0]?.divergences).toEqual([]);
  });

  it('leaves the state of one that is not active, and keeps the newest sixteen measurements', () => {
    const learned = measured(Array<number>(20).fill(30), { state: STATE_LEARNED });
    expect(learned.state).toBe(STATE_LEARNED);
    expect(learned.divergences).toHaveLength(16);
    expect(measured([1, 1], { state: STATE_RETIRED }).state).toBe(STATE_RETIRED);
  });
});

describe('what becomes of versions', () => {
  const line = (undone: readonly number[], versions = 0) => ({
    isUndone: (batch: number) => undone.includes(batch),
    versionsAfter: () => versions,
  });
  const learned = lesson({ state: STATE_LEARNED, sinceBatch: 5, divergences: [9, 1, 1] });

  it('makes a lesson active again whose step was undone, once', () => {
    const [again] = afterVersions([learned], line([5]), 8);
    expect(again).toMatchObject({ state: STATE_ACTIVE, divergences: [], sinceBatch: 8 });
    expect(afterVersions([learned], line([6]), 8)).toEqual([learned]);
    expect(afterVersions([again ?? learned], line([5]), 9)).toEqual([again]);
  });

  it('looks again at one that could not be taught after twenty versions', () => {
    const given = lesson({ state: STATE_UNTEACHABLE, sinceBatch: 5, divergences: [12, 12] });
    expect(afterVersions([given], line([], 19), 30)).toEqual([given]);
    expect(afterVersions([given], line([], 20), 31)[0]).toMatchObject({
      state: STATE_ACTIVE,
      divergences: [],
      sinceBatch: 31,
    });
  });

  it('never takes up what was retired', () => {
    const ended = lesson({ state: STATE_RETIRED, sinceBatch: 5 });
    expect(afterVersions([ended], line([5], 50), 60)).toEqual([ended]);
  });
});
