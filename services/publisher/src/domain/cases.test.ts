import { Lesson_State } from '@backtalk/proto/facts';
import { describe, expect, it } from 'vitest';
import { learnedLesson } from '../testing/lesson-facts.js';
import { casesFor, heldShare, judgeCases, type AskedCase, type Leaning } from './cases.js';

const limits = { perLesson: 2, most: 3, heldFrom: 0.5 };
const turnsOf = (lesson: string, count: number) => Array.from({ length: count }, (_, n) => `${lesson}${n}`);
const lessonOf = (id: string, count: number) => learnedLesson({ id, text: id, turns: turnsOf(id, count) });

describe('cases of a version', () => {
  it('a case shows the base every learned lesson, and all but its own; what is still being learned stands in neither', () => {
    const learned = learnedLesson({ id: 'b', text: 'B', turns: [] });
    const active = learnedLesson({ id: 'd', text: 'D', turns: [], state: Lesson_State.STATE_ACTIVE });
    const others = learnedLesson({ id: 'c', text: 'C', turns: [], scopeUser: 'user1' });
    const [only] = casesFor([lessonOf('A', 1), learned, active, others], 1, limits);
    expect(only).toEqual({
      lesson: 'A',
      turn: 'A0',
      tenant: 'tenant0',
      user: 'user0',
      told: ['A', 'B'],
      untold: ['B'],
    });
  });

  it('every lesson has a case where there is room, and none has more than its share', () => {
    const lessons = [lessonOf('A', 4), lessonOf('B', 1), lessonOf('C', 4)];
    const of = (number: number, most: number) => casesFor(lessons, number, { ...limits, most }).map(({ turn }) => turn);
    expect(of(0, 9)).toEqual(['A0', 'B0', 'C0', 'A1', 'C1']);
    expect(of(1, 9)).toEqual(['A2', 'B0', 'C2', 'A3', 'C3']);
    expect(of(1, 3)).toEqual(['A1', 'B0', 'C1']);
    expect(of(1, 2)).toEqual(['C0', 'A1']);
  });

  it.each([1, 2, 3, 4, 7, 10])('all turns of all lessons are asked in time, at most %i a version', (most) => {
    const lessons = ['A', 'B', 'C', 'D', 'E'].map((id) => lessonOf(id, 5));
    const asked = new Set<string>();
    for (let number = 3; number < 3 + Math.ceil(25 / most); number += 1)
      for (const { turn } of casesFor(lessons, number, { ...limits, most })) asked.add(turn);
    expect(asked.size).toBe(25);
  });
});

const leaning = (told: number, untold: number): Leaning => ({ told, untold });
const base = { baseTold: leaning(-5, -25), baseUntold: leaning(-25, -5) };

/** @param own nats by which the candidate prefers the answer of who was told, from −20 to 20 */
function asked(lesson: string, turn: string, own: number, other: number): AskedCase {
  const of = { lesson, turn, tenant: 't', user: 'u', told: ['A'], untold: [] };
  return { of, ...base, candidate: leaning(own, 0), serving: leaning(other, 0) };
}

describe('how far a lesson is held', () => {
  it('a version stands between the base that is not shown the lesson and the one that is', () => {
    const scores = asked('A', 'a', 0, 0);
    expect([-30, -20, -10, 0, 20, 40].map((nats) => heldShare(leaning(nats, 0), scores))).toEqual([
      0, 0, 0.25, 0.5, 1, 1,
    ]);
  });

  it('a lesson without an effect on an answer is not measured by it', () => {
    const scores = { ...asked('A', 'a', 0, 0), baseTold: leaning(-5, -6.5), baseUntold: leaning(-5, -5) };
    expect(heldShare(leaning(0, 0), scores)).toBeUndefined();
  });
});

describe('the gate on learned lessons', () => {
  it('a candidate is refused that holds a lesson no more, by the mean of its cases, and the worst is named', () => {
    const cases = [asked('A', 'a', 18, 20), asked('B', 'b', -2, 18), asked('B', 'c', -18, 18)];
    const { why, measurements } = judgeCases(cases, 'p-v1', limits);
    expect(why).toBe('cases: B is held 0.25, beside 0.95 of p-v1 (case c)');
    expect(measurements).toMatchObject({ cases: 3, cases_lost: 2 });
    expect(measurements['cases_held']).toBeCloseTo(0.483, 3);
  });

  it('a single answer that went astray refuses nothing where the lesson’s others hold', () => {
    expect(judgeCases([asked('A', 'a', -10, 20), asked('A', 'b', 20, 20)], 'p-v1', limits).why).toBe('');
  });

  it('a candidate is refused that falls below the bound, not one that only lies on its other side', () => {
    expect(judgeCases([asked('A', 'a', 1, 20)], 'p-v1', limits).why).toBe('');
    expect(judgeCases([asked('A', 'a', -0.2, 0.2)], 'p-v1', limits).why).toBe('');
    expect(judgeCases([asked('A', 'a', -1, 6)], 'p-v1', limits).why).toMatch(/^cases: A is held 0.47, beside 0.65 /);
  });

  it('a small step below the bound opens no way for a large one', () => {
    expect(judgeCases([asked('A', 'a', -1, 1)], 'p-v1', limits).why).toBe('');
    expect(judgeCases([asked('A', 'a', -20, -1)], 'p-v1', limits).why).toMatch(/^cases: A /);
  });

  it('a lesson refuses nothing that what serves does not hold, or that no answer shows', () => {
    expect(judgeCases([asked('A', 'a', -20, -7)], 'p-v1', limits).why).toBe('');
    const idle = { ...asked('A', 'a', -20, 20), baseTold: base.baseUntold };
    expect(judgeCases([idle], 'p-v1', limits)).toEqual({ why: '', measurements: { cases: 0, cases_lost: 0 } });
  });

  it('figures that are no numbers are a lesson lost', () => {
    expect(judgeCases([asked('A', 'a', Number.NaN, 20)], 'p-v1', limits).why).toMatch(/^cases: A /);
  });
});
