import { Lesson, Lesson_State, type LessonMeasure } from '@backtalk/proto/facts';
import { describe, expect, it } from 'vitest';
import { lessonProgress, weightsHold } from './progress.js';

const { STATE_LEARNED, STATE_ACTIVE } = Lesson_State;

const measure = (own: number, shape: { turns?: number; chance?: number; told?: number } = {}) => ({
  batch: 1,
  turns: 4,
  chance: 2,
  told: 12,
  steps: 1,
  questions: 0,
  hidden: false,
  askedAgain: [],
  own,
  ...shape,
});

describe('the progress of a lesson', () => {
  it('progress is the share of the way from chance to the base that is told, by the two newest measurements', () => {
    expect(lessonProgress({ measures: [measure(7)] })).toBe(0.5);
    expect(lessonProgress({ measures: [measure(2), measure(7), measure(12)] })).toBe(0.75);
    expect(lessonProgress({ measures: [measure(2, { turns: 1 }), measure(12, { turns: 3 })] })).toBe(0.75);
  });

  it('progress stays between 0 and 1', () => {
    expect(lessonProgress({ measures: [measure(-9)] })).toBe(0);
    expect(lessonProgress({ measures: [measure(30)] })).toBe(1);
  });

  it('no progress is known before it is measured, nor where the base that is told answers as by chance', () => {
    expect(lessonProgress({ measures: [] })).toBeUndefined();
    expect(lessonProgress({ measures: [measure(7, { told: 2 })] })).toBeUndefined();
  });

  it('the weights hold a lesson that is learned, unless its newest measurements are below half of the way', () => {
    const held = (shares: readonly number[], more: Partial<Lesson> = {}) =>
      weightsHold(Lesson.fromPartial({ state: STATE_LEARNED, measures: shares.map((own) => measure(own)), ...more }));
    expect(held([7])).toBe(true);
    expect(held([6.9])).toBe(false);
    expect(held([12, 2, 2])).toBe(false);
    expect(held([12], { state: STATE_ACTIVE })).toBe(false);
    expect(held([2], { coveredBy: 'another' })).toBe(true);
    // A release of before did not measure.
    expect(held([])).toBe(true);
  });

  it('a lesson that others hid is judged by its other measurements, if there are any', () => {
    const hidden = (own: number) => ({ ...measure(own), hidden: true });
    const held = (measures: LessonMeasure[]) => weightsHold(Lesson.fromPartial({ state: STATE_LEARNED, measures }));
    expect(held([measure(12), hidden(2), hidden(2)])).toBe(true);
    expect(held([measure(2), hidden(12), hidden(12)])).toBe(false);
    expect(held([hidden(2), hidden(2)])).toBe(false);
    expect(held([hidden(12), hidden(12)])).toBe(true);
  });
});
