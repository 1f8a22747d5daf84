import { Lesson, Lesson_State } from '@backtalk/proto/facts';
import { describe, expect, it } from 'vitest';

import { inForce, isLeftOut } from './in-force.js';

function lesson(id: string, more: Partial<Lesson> = {}): Lesson {
  const state = Lesson_State.STATE_ACTIVE;
  return Lesson.fromPartial({ id, text: `Wish ${id}.`, scopeTenant: 't', scopeUser: 'ann', state, ...more });
}

const ids = (lessons: readonly Lesson[]) => lessons.map(({ id }) => id);
const newer = Array.from({ length: 12 }, (_, n) => lesson(`n${n}`));

describe('the lessons that teachers have room for', () => {
  it('a long lesson that has no room leaves the room to shorter ones that are older', () => {
    const long = Array.from({ length: 6 }, (_, n) => lesson(`long${n}`, { text: 'x'.repeat(190) }));
    const lessons = [lesson('old'), lesson('too long', { text: 'x'.repeat(200) }), ...long];
    expect(ids(inForce(lessons))).toEqual(['old', ...ids(long)]);
  });

  it('a lesson is left out beside twelve newer ones of its person, and what covers it with it', () => {
    const left = (one: Lesson, lessons: readonly Lesson[]) => isLeftOut(one, lessons);
    const old = lesson('old');
    const covered = lesson('covered', { coveredBy: 'old' });
    expect(left(old, [old, ...newer])).toBe(true);
    expect(left(covered, [old, ...newer, covered])).toBe(true);
    expect(left(old, [old, ...newer.slice(1)])).toBe(false);
    expect(left(covered, [old, ...newer.slice(1), covered])).toBe(false);
    expect(left(old, [old, ...newer.map((one) => ({ ...one, scopeUser: 'bob' }))])).toBe(false);
  });

  it('what is over, or waits, is not left out for want of room', () => {
    const retired = lesson('retired', { state: Lesson_State.STATE_RETIRED });
    const waiting = lesson('waiting', { waitsFor: 'n0' });
    for (const one of [retired, waiting]) expect(isLeftOut(one, [one, ...newer])).toBe(false);
  });

  it('what holds for everyone is left out for one person beside newer lessons of their own', () => {
    const shared = lesson('shared', { scopeUser: '' });
    expect(isLeftOut(shared, [shared, ...newer])).toBe(false);
    expect(isLeftOut(shared, [shared, ...newer], { tenant: 't', user: 'ann' })).toBe(true);
  });
});
