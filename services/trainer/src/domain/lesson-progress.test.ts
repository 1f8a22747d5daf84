import type { Speaker } from '@backtalk/kit';
import { BatchSample, Lesson_State, type Lesson } from '@backtalk/proto/facts';
import { describe, expect, it } from 'vitest';

import { lesson } from '../testing/lessons.js';
import {
  afterMeasures,
  afterStep,
  afterVersions,
  lessonsToMeasure,
  type Measured,
  type Stepped,
} from './lesson-progress.js';

const { STATE_ACTIVE, STATE_HEARD, STATE_LEARNED, STATE_RETIRED, STATE_UNTEACHABLE } = Lesson_State;

const shown = (shape: Partial<BatchSample> = {}) =>
  BatchSample.fromPartial({ turn: 't', lessons: [lesson().id], ...shape });
const report = (turn: string, shape: { dropped?: string; divergence?: number } = {}) => ({
  turn,
  dropped: '',
  divergence: 8,
  staleness: 0,
  gradientShare: 0,
  answerReplaced: false,
  hintChosen: 0,
  ...shape,
});
/** What a version's answers show: `share` of an effect of so many nats. */
const found = (share: number, { effect = 20, turns = 4, questions = 0, hidden = false } = {}) => ({
  turns,
  questions,
  hidden,
  chance: -effect / 2,
  told: effect / 2,
  own: (share - 0.5) * effect,
  askedAgain: [],
});

interface Version {
  readonly share: number;
  readonly effect?: number;
  readonly turns?: number;
  readonly hidden?: boolean;
  /** Left to the teacher of all lessons, as the step reports it. */
  readonly divergence?: number;
}

const whole: Stepped = { method: 'opd', opdForm: 'full', optimizerSteps: 1 };

/** One lesson over so many versions, each made by a step that trained on it. */
function over(versions: readonly (number | Version)[], before: Partial<Lesson> = {}): Lesson {
  return versions.reduce<Lesson>((at, version, n) => {
    const { share, divergence = 8, ...how } = typeof version === 'number' ? { share: version } : version;
    const stepped = afterStep(
      [at],
      { number: 1, samples: [shown()], lessons: [at] },
      [report('t', { divergence })],
      whole,
    );
    return afterMeasures(stepped, new Map([[at.id, found(share, how)]]), n + 1, 0.7)[0] ?? at;
  }, lesson(before));
}

describe('the state of a lesson', () => {
  it('a lesson that answers follow is learned, however far they are from the teacher of all lessons', () => {
    const far = { share: 0.8, divergence: 60 };
    expect(over([0.2, far]).state).toBe(STATE_ACTIVE);
    expect(over([0.2, far, far])).toMatchObject({ state: STATE_LEARNED, sinceBatch: 3 });
  });

  it('a lesson that answers do not follow is not learned, however near they are to the teacher of all lessons', () => {
    const near = { share: 0, divergence: 0.1 };
    const states = [1, 2, 3, 4].map((versions) => over(Array<Version>(versions).fill(near)).state);
    expect(states).toEqual(Array(4).fill(STATE_ACTIVE));
  });

  it('a lesson is learned by two versions running, and not by one between two others', () => {
    expect(over([0.9, 0.6, 0.9, 0.6]).state).toBe(STATE_ACTIVE);
    expect(over([0.9, 0.69, 0.7, 0.71]).state).toBe(STATE_LEARNED);
  });

  it('a lesson that changes nothing in the base cannot be taught for now', () => {
    const none = { share: 1, effect: 1.5 };
    expect(over([none]).state).toBe(STATE_ACTIVE);
    expect(over([none, none])).toMatchObject({ state: STATE_UNTEACHABLE, sinceBatch: 2 });
    expect(over([none, { share: 0.1, effect: 4 }]).state).toBe(STATE_ACTIVE);
  });

  it('a lesson that has an effect is not let go of for two measurements that found little of it', () => {
    const [clear, little] = [
      { share: 0.3, effect: 4 },
      { share: 0.6, effect: 1.5 },
    ];
    expect(over([clear, clear, little, little]).state).toBe(STATE_ACTIVE);
    expect(over([little, little, clear, clear]).state).toBe(STATE_UNTEACHABLE);
  });

  it('a lesson that was measured five times is judged by how far it has come, whatever effect is found then', () => {
    const small = (share: number) => ({ share, effect: 1 });
    const measures = [0, 0, 0, 0].map((batch) => ({ batch, steps: 4, ...found(0.1, { effect: 1 }) }));
    const before = { steps: 4, measures };
    expect(over([small(0.3), small(0.5), small(0.6)], before).state).toBe(STATE_ACTIVE);
    expect(over(Array<Version>(8).fill(small(0.6)), before).state).toBe(STATE_LEARNED);
    expect(over(Array<Version>(12).fill(small(0.2)), before).state).toBe(STATE_UNTEACHABLE);
  });

  it('a lesson that steps have brought far is not let go of for a small effect, however few measurements there are', () => {
    const four = (share: number, effect: number) =>
      [1, 2].reduce<Lesson>((at, batch) => {
        const stepped = afterStep([at], { number: 1, samples: [shown()], lessons: [at] }, [report('t')], {
          ...whole,
          optimizerSteps: 4,
        });
        return afterMeasures(stepped, new Map([[at.id, found(share, { effect })]]), batch, 0.9)[0] ?? at;
      }, lesson());
    expect(four(0.64, 1.5)).toMatchObject({ state: STATE_ACTIVE, steps: 8 });
    expect(four(0.3, 1.5).state).toBe(STATE_UNTEACHABLE);
    expect(four(0.95, 4).state).toBe(STATE_LEARNED);
  });

  it('no state changes on too few turns', () => {
    const [learned, none] = [
      { share: 1, turns: 2 },
      { share: 0, effect: 0, turns: 2 },
    ];
    expect(over([learned, learned, learned]).state).toBe(STATE_ACTIVE);
    expect(over([none, none, none, none, none, none]).state).toBe(STATE_ACTIVE);
    expect(over([none, none], { state: STATE_LEARNED }).state).toBe(STATE_LEARNED);
    expect(over([learned, learned, { share: 1, turns: 4 }]).state).toBe(STATE_LEARNED);
  });

  it('questions of the trainer’s own do not say that a lesson has no effect', () => {
    const measured = (questions: number) =>
      [1, 2].reduce(
        (ledger, batch) => afterMeasures(ledger, new Map([['a', found(0, { effect: 1, questions })]]), batch, 0.9),
        [lesson({ id: 'a' })],
      )[0];
    expect(measured(0)?.state).toBe(STATE_UNTEACHABLE);
    expect(measured(4)?.state).toBe(STATE_ACTIVE);
  });

  it('a lesson that ten steps do not bring further cannot be taught for now', () => {
    const flat = Array.from({ length: 10 }, (_, n) => (n % 2) * 0.05);
    expect(over(flat.slice(1)).state).toBe(STATE_ACTIVE);
    expect(over(flat)).toMatchObject({ state: STATE_UNTEACHABLE, sinceBatch: 10 });
    expect(over([0, 0, 0, 0, 0, 0, 0, 0.2, 0.3, 0.4]).state).toBe(STATE_ACTIVE);
    expect(over([0.1, 0.3, ...Array<number>(11).fill(0.4)]).state).toBe(STATE_UNTEACHABLE);
  });

  it('versions whose steps did not train on a lesson do not count against it', () => {
    const idle = Array.from({ length: 9 }, () => found(0)).reduce<Lesson>(
      (at, measure, n) => afterMeasures([at], new Map([[at.id, measure]]), n + 1, 0.7)[0] ?? at,
      lesson(),
    );
    expect(idle).toMatchObject({ state: STATE_ACTIVE, steps: 0 });
  });

  it('a lesson that rises no more is learned as far as it goes, from half of the way on', () => {
    expect(over([0.3, 0.5, 0.6, 0.6, 0.6, 0.6]).state).toBe(STATE_ACTIVE);
    expect(over([0.3, 0.5, 0.6, 0.6, 0.6, 0.6, 0.6, 0.6]).state).toBe(STATE_LEARNED);
  });

  it('what other lessons hide is not held against a lesson: it is learned as far as they carry it, and not lost', () => {
    const hidden = (count: number) => Array.from({ length: count }, () => ({ share: 0.05, hidden: true }));
    expect(over(hidden(9)).state).toBe(STATE_ACTIVE);
    expect(over(hidden(10)).state).toBe(STATE_LEARNED);
    expect(over(hidden(2), { state: STATE_LEARNED }).state).toBe(STATE_LEARNED);
    expect(over([0.95, 0.95].map((share) => ({ share, hidden: true }))).state).toBe(STATE_LEARNED);
  });

  it('a learned lesson is lost only far below the bound at which it was learned, and in two versions running', () => {
    const before = { state: STATE_LEARNED };
    expect(over([0.4, 0.4, 0.5, 0.1, 0.4, 0.1], before).state).toBe(STATE_LEARNED);
    expect(over([0.3, 0.3], before)).toMatchObject({ state: STATE_ACTIVE, sinceBatch: 2 });
  });

  it('no measurement moves what is not in force, and the newest sixteen are kept', () => {
    expect(over([1, 1], { state: STATE_RETIRED }).state).toBe(STATE_RETIRED);
    expect(over([1, 1], { state: STATE_UNTEACHABLE }).state).toBe(STATE_UNTEACHABLE);
    const many = over(Array<number>(20).fill(0.9));
    expect(many.measures.map(({ batch }) => batch)).toEqual(Array.from({ length: 16 }, (_, n) => n + 5));
  });
});

describe('steps of a lesson', () => {
  const [a, b] = [lesson({ id: 'a' }), lesson({ id: 'b' })];
  const covered = lesson({ id: 'c', coveredBy: 'a' });
  const stepsOf = (lessons: readonly Lesson[]) => lessons.map(({ steps }) => steps);

  it('a step counts for the lessons that its trained samples were shown, and for what they cover', () => {
    const samples = [shown({ turn: 't1', lessons: ['a'] }), shown({ turn: 't2', lessons: ['a', 'b'] })];
    const reports = [report('t1'), report('t2', { dropped: 'too_long' })];
    const all = [a, b, covered];
    expect(stepsOf(afterStep(all, { number: 1, samples, lessons: all }, reports, whole))).toEqual([1, 0, 1]);
    expect(stepsOf(afterStep([a, b, covered], { number: 1, samples, lessons: [a, b, covered] }, [], whole))).toEqual([
      0, 0, 0,
    ]);
  });

  it('a stale sample counts where whole distributions are compared, since its reward alone was left out', () => {
    const reports = [report('t1', { dropped: 'stale' })];
    const samples = [shown({ turn: 't1', lessons: ['a'] })];
    expect(stepsOf(afterStep([a, b], { number: 1, samples, lessons: [a, b] }, reports, whole))).toEqual([1, 0]);
    expect(
      stepsOf(afterStep([a, b], { number: 1, samples, lessons: [a, b] }, reports, { ...whole, opdForm: 'sampled' })),
    ).toEqual([0, 0]);
  });

  it('a batch counts for as many steps as the optimiser takes of it', () => {
    const samples = [shown({ turn: 't1', lessons: ['a'] })];
    const twice = afterStep([a, b], { number: 1, samples, lessons: [a, b] }, [report('t1')], {
      ...whole,
      optimizerSteps: 4,
    });
    // What was said of a lesson while the step waited for its worker begins anew.
    const edited = { ...a, text: 'In other words.' };
    expect(stepsOf(afterStep([edited, b], { number: 1, samples, lessons: [a, b] }, [report('t1')], whole))[0]).toBe(0);
    expect(stepsOf(twice)).toEqual([4, 0]);
  });

  it('a step that a fact has taken in counts no more once its version is burned', () => {
    const samples = [shown({ turn: 't1', lessons: ['a'] })];
    const step = (at: readonly Lesson[], number: number) =>
      afterStep(at, { number, samples, lessons: [...at] }, [report('t1')], whole);
    const after = (undone: number) =>
      afterVersions(step(step([a], 1), 2), { isUndone: (n) => n === undone, versionsAfter: () => 0 }, 9);
    expect([0, 2, 1].map(after)).toMatchObject([[{ steps: 2 }], [{ steps: 1 }], [{ steps: 0, stepped: [] }]]);
  });
});

describe('which lessons are asked', () => {
  /** Every other batch made a version. */
  const line = { versionsAfter: (batch: number) => [1, 3, 5, 7, 9].filter((made) => made > batch).length };
  const asking = (lessons: readonly Lesson[], batch: number, samples: readonly BatchSample[], rehearsalSteps = 0) =>
    lessonsToMeasure(lessons, { batch, line }, samples, { rehearsalSteps, learnedShare: 0.9 });
  const turn = (id: string) => ({ turn: id, tenant: 't', user: 'a' });
  const ids = (lessons: readonly Lesson[], madeBy = 9) =>
    asking(lessons, madeBy, [shown({ turn: 's1', lessons: lessons.map(({ id }) => id) })]).map(({ id }) => id);
  const at = (id: string, batch: number, shape: Partial<Lesson> = {}) =>
    lesson({ id, measures: [{ batch, steps: 1, ...found(0.5) }], ...shape });

  it('those that are being learned come before those that are learned, and of each those that were not asked for longest', () => {
    const learned = { state: STATE_LEARNED };
    expect(ids([at('a', 2, learned), at('b', 4), at('c', 3), at('d', 1, learned)])).toEqual(['c', 'b', 'd', 'a']);
  });

  it('a learned lesson is asked of every third version, however many batches settle between them', () => {
    const learned = (batch: number) => at(`${batch}`, batch, { state: STATE_LEARNED });
    expect(ids([1, 3, 5, 7].map(learned))).toEqual(['1', '3']);
  });

  it('a learned lesson that was found lost is asked again of the next version, and one that others hide is not', () => {
    const low = (id: string, hidden: boolean) =>
      at(id, 7, { state: STATE_LEARNED, measures: [{ batch: 7, steps: 1, ...found(0.3, { hidden }) }] });
    const sound = at('sound', 7, { state: STATE_LEARNED });
    expect(ids([low('low', false), low('hidden', true), sound])).toEqual(['low']);
  });

  it('no lesson is asked twice of one version, nor one that teachers are not shown', () => {
    const others = [lesson({ id: 'h', state: STATE_HEARD }), lesson({ id: 'c', coveredBy: 'a' })];
    expect(ids([at('a', 9), at('b', 8), ...others])).toEqual(['b']);
  });

  it('a lesson is measured beside what teachers of its person are shown, in their order, and alone where they are not shown it', () => {
    const others = [
      lesson({ id: 'x', text: 'X', cases: [turn('x')], scopeUser: 'b' }),
      lesson({ id: 'h', text: 'H', cases: [turn('h')], state: STATE_HEARD }),
    ];
    const own = ['A', 'B', 'C'].map((text) => lesson({ id: text, text, cases: [turn(text)] }));
    const shownOf = (lessons: readonly Lesson[], speaker?: Speaker) =>
      asking(lessons, 1, []).map(({ shown: shownTo }) => {
        const { told, untold } = shownTo(speaker);
        return [told.join(''), untold.join('')];
      });
    expect(shownOf([...own, ...others])).toEqual([
      ['ABC', 'BC'],
      ['ABC', 'AC'],
      ['ABC', 'AB'],
      ['X', ''],
    ]);
    const common = lesson({ id: 'c', text: 'C', cases: [turn('c')], scopeUser: '' });
    expect(shownOf([...own.slice(0, 1), common])[1]).toEqual(['C', '']);
    expect(shownOf([...own.slice(0, 1), common], { tenant: 't', user: 'a' })[1]).toEqual(['AC', 'A']);
    const many = Array.from({ length: 13 }, (_, n) => lesson({ id: `${n}`, text: `${n};`, cases: [turn(`t${n}`)] }));
    expect(shownOf(many)[0]).toEqual(['0;', '']);
  });

  it('a lesson is asked on its corrected turns, newest first, and then on others that were shown it', () => {
    const samples = ['t2', 's1', 's2'].map((id) => shown({ turn: id, lessons: id === 's2' ? [] : ['a'] }));
    const [asked] = asking([lesson({ id: 'a', cases: [turn('t1'), turn('t2')] })], 1, samples);
    expect(asked?.turns.map((one) => one.turn)).toEqual(['t2', 't1', 's1']);
    expect(asking([lesson({ id: 'b' })], 1, samples)).toEqual([]);
    expect(asking([lesson({ id: 'b' })], 1, samples, 1)).toMatchObject([{ turns: [], fills: true }]);
    expect(asking([lesson({ id: 'b', cameBack: true })], 1, samples, 1)).toEqual([]);
    const rehearsed = [shown({ turn: 'rehearsal_1_1', question: 1, lessons: ['a'] })];
    expect(asking([lesson({ id: 'a' })], 1, rehearsed, 1)).toMatchObject([{ turns: [] }]);
  });
});

describe('what is told of a lesson’s own turns', () => {
  it('a person’s corrected turns are told, and nothing of a lesson that everyone of a tenant reads', () => {
    const cases = [{ turn: 't1', tenant: 't', user: 'a' }];
    const recipe = { rehearsalSteps: 0, learnedShare: 0.9 };
    const correctedOf = (scopeUser: string) => {
      const samples = [shown({ turn: 's1', lessons: ['a'] })];
      const line = { versionsAfter: () => 0 };
      const [asked] = lessonsToMeasure([lesson({ id: 'a', scopeUser, cases })], { batch: 1, line }, samples, recipe);
      return [...(asked?.corrected ?? [])];
    };
    expect(correctedOf('a')).toEqual(['t1']);
    expect(correctedOf('')).toEqual([]);
  });

  it('the newest measure alone keeps answers', () => {
    const askedAgain = [{ question: 'Why?', before: 'So.', after: 'so.' }];
    const once = afterMeasures([lesson({ id: 'a' })], new Map([['a', { ...found(0.1), askedAgain }]]), 1, 0.9);
    expect(once[0]?.measures).toMatchObject([{ askedAgain }]);
    const twice = afterMeasures(once, new Map([['a', found(0.2)]]), 3, 0.9);
    expect(twice[0]?.measures).toMatchObject([
      { batch: 1, askedAgain: [] },
      { batch: 3, askedAgain: [] },
    ]);
  });
});

describe('what is covered', () => {
  const cover = lesson({ id: 'a' });
  const covered = lesson({ id: 'b', coveredBy: 'a' });
  const ended = lesson({ id: 'c', coveredBy: 'a', state: STATE_RETIRED });

  it('what is covered comes as far as its cover', () => {
    const measured: Measured = new Map([['a', found(1)]]);
    const once = afterMeasures([cover, covered, ended], measured, 4, 0.7);
    const twice = afterMeasures(once, measured, 5, 0.7);
    expect(twice.map(({ state, sinceBatch }) => [state, sinceBatch])).toEqual([
      [STATE_LEARNED, 5],
      [STATE_LEARNED, 5],
      [STATE_RETIRED, 0],
    ]);
  });
});

describe('what becomes of versions', () => {
  const line = (undone: readonly number[], versions = 0) => ({
    isUndone: (batch: number) => undone.includes(batch),
    versionsAfter: () => versions,
  });
  const measures = [{ batch: 5, steps: 2, ...found(0.9) }];
  const learned = lesson({ state: STATE_LEARNED, sinceBatch: 5, measures, steps: 2 });

  it('makes a lesson active again whose step was undone, once', () => {
    const [again] = afterVersions([learned], line([5]), 8);
    expect(again).toMatchObject({ state: STATE_ACTIVE, measures: [], steps: 0, sinceBatch: 8 });
    expect(afterVersions([learned], line([6]), 8)).toEqual([learned]);
    expect(afterVersions([again ?? learned], line([5]), 9)).toEqual([again]);
  });

  it('forgets what an undone version showed of a lesson', () => {
    const active = lesson({ measures: [4, 5, 6].map((batch) => ({ batch, steps: 2, ...found(0.5) })) });
    const [after] = afterVersions([active], line([5, 6]), 8);
    expect(after?.measures.map(({ batch }) => batch)).toEqual([4]);
  });

  it('steps that made undone versions do not count against a lesson', () => {
    const measuresAt = [
      { batch: 4, steps: 3, ...found(0.5) },
      { batch: 6, steps: 11, ...found(0.1) },
    ];
    const active = lesson({ measures: measuresAt, steps: 12 });
    expect(afterVersions([active], line([5, 6]), 8)[0]).toMatchObject({ state: STATE_ACTIVE, steps: 3 });
    expect(afterVersions([active], line([4, 5, 6]), 8)[0]).toMatchObject({ state: STATE_ACTIVE, steps: 0 });
    expect(afterVersions([active], line([9]), 10)[0]).toMatchObject({ steps: 12 });
  });

  it('one that an undone version found unteachable is open again', () => {
    const given = lesson({ state: STATE_UNTEACHABLE, sinceBatch: 5, measures, steps: 6 });
    expect(afterVersions([given], line([5]), 8)[0]).toMatchObject({ state: STATE_ACTIVE, steps: 0, sinceBatch: 8 });
  });

  it('looks again at one that could not be taught after twenty versions', () => {
    const given = lesson({ state: STATE_UNTEACHABLE, sinceBatch: 5, measures, steps: 6 });
    expect(afterVersions([given], line([], 19), 30)).toEqual([given]);
    expect(afterVersions([given], line([], 20), 31)[0]).toMatchObject({
      state: STATE_ACTIVE,
      measures: [],
      steps: 0,
      sinceBatch: 31,
    });
  });

  it('never takes up what was retired', () => {
    const ended = lesson({ state: STATE_RETIRED, sinceBatch: 5 });
    expect(afterVersions([ended], line([5], 50), 60)).toEqual([ended]);
  });
});
