// Turns that were corrected for the sake of learned lessons, through a real publisher: a candidate that has lost such a lesson is refused.
import { fakePromptIds } from '@backtalk/dialects/testing';
import { Lesson_State } from '@backtalk/proto/facts';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { learnedLesson, LessonFacts } from './testing/lesson-facts.js';
import { SwapRig } from './testing/swap-rig.js';

const lesson = learnedLesson();
const lastWordOf = (content: string) => fakePromptIds([{ role: 'user', content }]).at(-3) ?? 0;
const [indeed, well, wish] = [lastWordOf('Indeed'), lastWordOf('Well'), lastWordOf(lesson.text)];

let rig: SwapRig;
let facts: LessonFacts;
/** Versions that begin with "Indeed" without being told. */
let followers: Set<string>;

beforeEach(async () => {
  rig = await SwapRig.start();
  facts = new LessonFacts(rig.nats);
  followers = new Set();
  const follows = (ids: readonly number[], model: string) => ids.includes(wish) || followers.has(model);
  rig.engine.settings.continues = (ids, model) => (follows(ids, model) ? 'Indeed' : 'Well');
  rig.engine.settings.odds = (ids, model) => {
    const unlikely = follows(ids, model) ? well : indeed;
    return ids.includes(unlikely) ? -20 : 0;
  };
  await rig.startLoader();
});

afterEach(() => rig.stop());

describe('a learned lesson', () => {
  beforeEach(async () => {
    await rig.startPublisher();
    followers.add('backtalk-v1');
    await rig.release(1);
    await facts.turnIs('turn1');
  });

  it('a candidate is refused that has lost a learned lesson, by the names of the lesson and of the turn', async () => {
    await facts.lessonsAre(lesson);
    await rig.train(2);
    const { why, measurements } = await rig.burned(2);
    expect(why).toMatch(/^cases: lesson1 is held 0\.0\d, beside \S+ of backtalk-v1 \(case turn1\)$/);
    expect(measurements).toMatchObject({ cases: 1, cases_lost: 1 });
    expect(measurements['cases_held']).toBeLessThan(0.1);
    expect((await rig.routes())?.stable).toBe('backtalk-v1');
  });

  it('a candidate passes that holds what it learned', async () => {
    await facts.lessonsAre(lesson);
    followers.add('backtalk-v2');
    await rig.train(2);
    await rig.stableIs(2);
    expect((await rig.staged()).at(-1)?.measurements).toMatchObject({ cases: 1, cases_lost: 0 });
  });

  it('a lesson refuses nothing that is not learned, that another covers, or whose turns may not be asked', async () => {
    await facts.turnIs('other_policy', { policy: 'other' });
    await facts.turnIs('opted_out', { consent: { train: false, source: 'request' } });
    await facts.lessonsAre(
      learnedLesson({ id: 'retired', state: Lesson_State.STATE_RETIRED, endedBy: 'person' }),
      learnedLesson({ id: 'active', state: Lesson_State.STATE_ACTIVE }),
      learnedLesson({ id: 'covered', coveredBy: 'active' }),
      learnedLesson({ id: 'forgotten', turns: ['gone_from_the_log', 'other_policy'] }),
      learnedLesson({ id: 'withdrawn', turns: ['opted_out'] }),
    );
    await rig.train(2);
    await rig.stableIs(2);
    expect((await rig.staged()).at(-1)?.measurements['cases']).toBeUndefined();
  });

  it('a lesson that is retired refuses no further candidate', async () => {
    await facts.lessonsAre(lesson);
    await rig.train(2);
    await rig.burned(2);
    await facts.lessonsAre({ ...lesson, state: Lesson_State.STATE_RETIRED });
    await rig.train(3, { parent: 'backtalk-v1' });
    await rig.stableIs(3);
  });
});

describe('a lesson that what serves does not hold either', () => {
  it('a lesson that what serves does not hold refuses nothing', async () => {
    await rig.startPublisher();
    await rig.release(1);
    await facts.turnIs('turn1');
    await facts.lessonsAre(lesson);
    await rig.train(2);
    await rig.stableIs(2);
    const measurements = (await rig.staged()).at(-1)?.measurements ?? {};
    expect(measurements).toMatchObject({ cases: 1, cases_lost: 0 });
    expect(measurements['cases_held']).toBeLessThan(0.1);
  });
});

describe('an installation that asks no cases', () => {
  it('a candidate passes that has lost a lesson where no case is asked', async () => {
    await rig.startPublisher({}, { BACKTALK_CASES_PER_LESSON: '0' });
    followers.add('backtalk-v1');
    await rig.release(1);
    await facts.turnIs('turn1');
    await facts.lessonsAre(lesson);
    await rig.train(2);
    await rig.stableIs(2);
  });
});
