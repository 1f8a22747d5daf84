import { describe, expect, it } from 'vitest';
import {
  faultOfText,
  faultOfTopic,
  judgeBehaviour,
  otherQuestions,
  signTest,
  type AnswerFault,
  type Faults,
} from './behaviour.js';

const ids = (count: number) => Array.from({ length: count }, (_, at) => at);
const faulty = (count: number, fault: AnswerFault = 'off_topic'): Faults =>
  Array.from({ length: 12 }, (_, at) => (at < count ? fault : undefined));
const judge = (candidate: Faults, stable: Faults, base: Faults = faulty(0)) =>
  judgeBehaviour(
    candidate,
    [
      { version: 'v3', faults: stable },
      { version: 'v0', faults: base },
    ],
    0.05,
  );

describe('the fault of an answer', () => {
  it('an answer that says nothing is empty, though it has tokens', () => {
    expect(faultOfText(' \n', [5, 6])).toBe('empty');
    expect(faultOfText('', [])).toBe('empty');
  });

  it('an answer loops in which four tokens stand three times, and not one in which they stand twice', () => {
    const words = [7, 8, 9, 10];
    expect(faultOfText('text', [...words, 1, ...words, 2, ...words])).toBe('looping');
    expect(faultOfText('text', [...words, 1, ...words, 2])).toBeUndefined();
    expect(faultOfText('text', [4, 4, 4, 4, 4, 4])).toBe('looping');
    expect(faultOfText('text', ids(40))).toBeUndefined();
  });

  it('an answer is off topic that is likelier after any other question than after its own', () => {
    expect(
      faultOfTopic(
        [-1, -1],
        [
          [-3, -3],
          [-0.5, -1],
        ],
      ),
    ).toBe('off_topic');
    expect(
      faultOfTopic(
        [-1, -1],
        [
          [-3, -3],
          [-1, -1.5],
        ],
      ),
    ).toBeUndefined();
  });
});

describe('otherQuestions', () => {
  it('takes five others, and never the question itself, however few there are', () => {
    expect(otherQuestions(10, 12)).toEqual([11, 0, 1, 2, 3]);
    expect(otherQuestions(1, 3)).toEqual([2, 0]);
    expect(otherQuestions(0, 1)).toEqual([]);
  });
});

describe('signTest', () => {
  it('a sign test gives the upper tail of throws of a fair coin', () => {
    expect(signTest(0, 0)).toBe(1);
    expect(signTest(5, 0)).toBeCloseTo(1 / 32, 12);
    expect(signTest(7, 1)).toBeCloseTo(9 / 256, 12);
    expect(signTest(2, 2)).toBeCloseTo(11 / 16, 12);
  });
});

describe('judgeBehaviour', () => {
  it('takes as many faults as chance may give, and refuses the next', () => {
    expect(judge(faulty(4), faulty(0)).why).toBe('');
    expect(judge(faulty(5), faulty(0)).why).toBe("behaviour: of 12 answers 5 off_topic; 0 of v3's (p 0.03)");
  });

  it('asks no more of a candidate than the others give on the same questions', () => {
    expect(judge(faulty(12), faulty(11), faulty(11)).why).toBe('');
    const elsewhere = faulty(6).toReversed();
    expect(judge(faulty(6), elsewhere, elsewhere).why).toBe('');
  });

  it('refuses a candidate that is no worse than what serves, but worse than the base', () => {
    expect(judge(faulty(6), faulty(4)).why).toContain("of v0's");
  });

  it('counts the faults by their kinds', () => {
    const mixed = [...faulty(2, 'looping').slice(0, 2), ...faulty(1, 'empty').slice(0, 10)];
    expect(judge(mixed, faulty(0)).measurements).toEqual({
      behaviour_probes: 12,
      behaviour_empty: 1,
      behaviour_looping: 2,
      behaviour_off_topic: 0,
    });
  });
});
