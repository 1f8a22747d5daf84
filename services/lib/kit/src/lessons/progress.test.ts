import { Lesson_State } from '@backtalk/proto/facts';
import { describe, expect, it } from 'vitest';
import { lessonProgress, weightsHold } from './progress.js';

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

  it('the weights hold a lesson that is learned, unless it was learned no further than a part of the way', () => {
    const { STATE_LEARNED, STATE_ACTIVE } = Lesson_State;
    expect(weightsHold({ state: STATE_LEARNED, measures: [measure(7)] })).toBe(true);
    expect(weightsHold({ state: STATE_LEARNED, measures: [measure(6.9)] })).toBe(false);
    expect(weightsHold({ state: STATE_LEARNED, measures: [measure(12), measure(2), measure(2)] })).toBe(false);
    expect(weightsHold({ state: STATE_ACTIVE, measures: [measure(12)] })).toBe(false);
    // Covered, or of a release that did not measure.
    expect(weightsHold({ state: STATE_LEARNED, measures: [] })).toBe(true);
  });
});
