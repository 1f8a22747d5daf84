import { BacktalkError } from '@backtalk/kit';
import { FakeClock } from '@backtalk/kit/testing';
import { Lesson, Lesson_State, TurnJudged } from '@backtalk/proto/facts';
import { describe, expect, it } from 'vitest';
import { LessonView } from './lesson-view.js';

const ann = { tenant: 't', user: 'ann' };
const lesson = (text: string) =>
  Lesson.fromPartial({ id: text, text, scopeTenant: 't', state: Lesson_State.STATE_ACTIVE });

/** A turn in which a person said something to hold from now on. */
const said = (turn: string, hint: string) => ({
  message: TurnJudged.fromPartial({ turn, hint, stands: true }),
  sequence: 1,
  timeMs: Number.MAX_SAFE_INTEGER,
});

/** A log whose answers are given when the test says so. */
function view(judged: ReturnType<typeof said>[] = [], held: ReadonlySet<string> = new Set()) {
  const asked: { resolve: (texts: readonly string[]) => void; reject: (error: Error) => void }[] = [];
  const clock = new FakeClock();
  const unread: string[] = [];
  const log = {
    judgedSince: (_policy: string, _person: object, from: number) => Promise.resolve(from > 1 ? [] : judged),
    ownerOf: (_caller: object, turn: string) =>
      Promise.resolve(held.has(turn) ? { ...ann, policy: 'backtalk', turn } : undefined),
    lessonsOf: () =>
      new Promise<{ lessons: Lesson[]; changes: [] }>((resolve, reject) => {
        asked.push({ resolve: (texts) => resolve({ lessons: texts.map(lesson), changes: [] }), reject });
      }),
  };
  const lessons = new LessonView(log, clock, { lessonsUnread: (error: BacktalkError) => unread.push(error.code) });
  const texts = async () => (await lessons.of('backtalk', ann)).map(({ text }) => text);
  const settled = () => new Promise((resolve) => setImmediate(resolve));
  return { lessons, texts, asked, clock, unread, settled };
}

describe('the lessons of a person, as requests see them', () => {
  it('the first answer waits for the log, and later ones take what was read until it is read again', async () => {
    const { texts, asked, clock, settled } = view();
    const first = texts();
    await settled();
    asked[0]?.resolve(['Be brief.']);
    expect(await first).toEqual(['Be brief.']);
    expect(await texts()).toEqual(['Be brief.']);
    expect(asked).toHaveLength(1);
    await clock.advance(2_000);
    expect(await texts()).toEqual(['Be brief.']);
    await settled();
    asked[1]?.resolve(['In French.']);
    await settled();
    expect(await texts()).toEqual(['In French.']);
    expect(asked).toHaveLength(2);
  });

  it('a wish that is no lesson yet is shown as long as the log holds its turn, and not of a person who was forgotten', async () => {
    const held = new Set(['turn1']);
    const { texts, asked, clock, settled } = view([said('turn1', 'Use tables.')], held);
    const first = texts();
    await settled();
    asked[0]?.resolve([]);
    expect(await first).toEqual(['Use tables.']);
    held.delete('turn1');
    await clock.advance(2_000);
    await texts();
    await settled();
    asked[1]?.resolve([]);
    await settled();
    expect(await texts()).toEqual([]);
  });

  it('what was asked before a change does not answer for what comes after it', async () => {
    const { lessons, texts, asked, settled } = view();
    const before = texts();
    await settled();
    lessons.changed('backtalk', 'other');
    lessons.changed('backtalk', 't');
    const after = texts();
    await settled();
    asked[0]?.resolve(['Before.']);
    await before;
    asked[1]?.resolve(['Before.', 'After.']);
    expect(await after).toEqual(['Before.', 'After.']);
    expect(await texts()).toEqual(['Before.', 'After.']);
  });

  it('a log that does not answer in time, or fails, leaves an answer without lessons', async () => {
    const { texts, asked, clock, unread, settled } = view();
    const waiting = texts();
    await settled();
    await clock.advance(500);
    expect(await waiting).toEqual([]);
    asked[0]?.reject(new BacktalkError({ code: 'log_unavailable', message: 'away', retry: 'later' }));
    await settled();
    expect(unread).toEqual(['log_unavailable']);
    expect(await texts()).toEqual([]);
  });
});
