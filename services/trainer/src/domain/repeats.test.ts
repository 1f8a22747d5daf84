import {
  BatchClosed,
  BatchSample,
  Lesson,
  Lesson_State,
  WeightsStaged,
  WeightsStaged_Stage,
  WeightsTrained,
} from '@backtalk/proto/facts';
import { describe, expect, it } from 'vitest';

import { recipeWith } from '../testing/candidates.js';
import { BatchChain } from './batch-chain.js';
import { carriedState } from './carried-state.js';
import { notRepeated, repeatedBatch, stepsToRepeat } from './repeats.js';
import { VersionLine } from './version-line.js';

const { STATE_ACTIVE, STATE_HEARD, STATE_LEARNED, STATE_RETIRED, STATE_UNTEACHABLE } = Lesson_State;
const { STAGE_BURNED } = WeightsStaged_Stage;

const lesson = (id: string, state = STATE_ACTIVE, more: Partial<Lesson> = {}) =>
  Lesson.fromPartial({ id, state, text: `Do ${id}.`, scopeTenant: 't', ...more });
const sample = (turn: string, more: Partial<BatchSample> = {}) =>
  BatchSample.fromPartial({ turn, tenant: 't', user: 'ann', effective: true, advantage: -1, ...more });

/** What is left of samples of a batch whose ledger was `before`, as the ledger is `now`. */
function left(
  samples: BatchSample[],
  before: Lesson[],
  now: Lesson[],
  { forgotten = [], first }: { readonly forgotten?: readonly string[]; readonly first?: Partial<BatchClosed> } = {},
): BatchClosed | undefined {
  const chain = new BatchChain('p');
  const batch = BatchClosed.fromPartial({
    number: 4,
    version: 'p-v4',
    samples,
    lessons: before,
    seed: 77,
    configDigest: 'plan',
    klBeta: 0.25,
    meanAnswerLength: 30,
  });
  chain.closed(batch, 1);
  chain.closed(BatchClosed.fromPartial({ number: 9, lessons: now, meanAnswerLength: 31, lessonsThrough: 5 }), 2);
  const state = carriedState(chain, new VersionLine('p'), recipeWith());
  const people = forgotten.map((user) => ({ tenant: 't', user }));
  return repeatedBatch({ policy: 'p', chain, state }, batch, {
    parent: 'p-v2',
    first: first === undefined ? batch : BatchClosed.fromPartial(first),
    forgotten: people,
  });
}

const turnsOf = (batch: BatchClosed | undefined) => batch?.samples.map(({ turn }) => turn);

describe('what a batch is repeated with', () => {
  it('the step keeps its seed, plan and weight of the KL, and carries the ledger on', () => {
    const repeated = left([sample('a', { lessons: ['m'] })], [lesson('m')], [lesson('m', STATE_LEARNED)]);
    expect(repeated).toMatchObject({
      why: 'repeated',
      number: 10,
      repeats: 4,
      first: 4,
      parent: 'p-v2',
      version: 'p-v5',
      seed: 77,
      configDigest: 'plan',
      klBeta: 0.25,
      meanAnswerLength: 31,
      lessonsThrough: 5,
      lessons: [{ id: 'm', state: STATE_LEARNED }],
      settled: [],
    });
  });

  it('teachers are shown no lesson that is not in force any more, and a turn that asked for one that has ended is left out', () => {
    const samples = [
      sample('first', { lessons: ['l'] }),
      sample('case', { lessons: ['l'], hindsight: 'Do l, please.' }),
      sample('of both', { lessons: ['l', 'm', 'u'] }),
    ];
    const now = [
      lesson('l', STATE_RETIRED, { firstTurn: 'first', cases: [{ turn: 'case', tenant: 't', user: 'ann' }] }),
      lesson('m'),
      lesson('u', STATE_UNTEACHABLE, { firstTurn: 'of both' }),
    ];
    const repeated = left(samples, [lesson('l'), lesson('m'), lesson('u')], now);
    expect(repeated?.samples).toEqual([sample('of both', { lessons: ['m'] })]);
  });

  it('corrections that the newest ledger names no more are known by the ledger of their day, also of a lesson that is gone from it', () => {
    const of = (turn: string) => ({ cases: [{ turn, tenant: 't', user: 'ann' }] });
    const before = [lesson('l', STATE_ACTIVE, of('a')), lesson('gone', STATE_ACTIVE, of('b'))];
    const samples = [sample('a', { hindsight: 'Do l.' }), sample('b', { hindsight: 'Do gone.' }), sample('c')];
    expect(turnsOf(left(samples, before, [lesson('l', STATE_RETIRED, of('z'))]))).toEqual(['c']);
  });

  it('corrections are known by the ledger of the batch whose samples they were first, and that one is named', () => {
    const first = {
      number: 2,
      lessons: [lesson('l', STATE_ACTIVE, { cases: [{ turn: 'a', tenant: 't', user: 'ann' }] })],
    };
    const samples = [sample('a', { hindsight: 'Do l.' }), sample('b', { hindsight: 'Do m.' })];
    const repeated = left(samples, [], [lesson('l', STATE_RETIRED)], { first });
    expect([turnsOf(repeated), repeated?.first]).toEqual([['b'], 2]);
  });

  it('a wish that was heard once and has made room for newer ones has not ended', () => {
    const heard = lesson('h', STATE_HEARD, { firstTurn: 'a' });
    expect(turnsOf(left([sample('a', { hindsight: 'Do h.' })], [heard], []))).toEqual(['a']);
  });

  it('an answer that was held to a lesson alone, one that taught nothing else, and a “no” beside it are left out; other rewards and own hindsight stay', () => {
    const samples = [
      sample('anchor', { effective: false, lessons: ['l'] }),
      sample('anchor of both', { effective: false, lessons: ['l', 'm'] }),
      sample('told', { advantage: 0, lessons: ['l'] }),
      sample('no beside it', { lessons: ['l'], verdict: -1 }),
      sample('praised', { lessons: ['l'], verdict: 1, advantage: 1 }),
      sample('no beside another', { lessons: ['u'], verdict: -1 }),
      sample('corrected', { advantage: 0, hindsight: 'It is Canberra.' }),
    ];
    const now = [lesson('l', STATE_RETIRED), lesson('m'), lesson('u', STATE_UNTEACHABLE)];
    const repeated = left(samples, [lesson('l'), lesson('m'), lesson('u')], now);
    expect(turnsOf(repeated)).toEqual(['anchor of both', 'praised', 'no beside another', 'corrected']);
  });

  it('questions of a rehearsal stay for what was being learned, and not for what was held already', () => {
    const asked = (lessons: string[]) => [sample('rehearsal_4_1', { question: 3, effective: false, lessons })];
    const now = [lesson('l', STATE_RETIRED), lesson('m')];
    expect(turnsOf(left(asked(['l', 'm']), [lesson('l'), lesson('m')], now))).toEqual(['rehearsal_4_1']);
    expect(left(asked(['l', 'm']), [lesson('l'), lesson('m', STATE_LEARNED)], now)).toBeUndefined();
  });

  it('nothing is repeated where only answers that were held to lessons are left', () => {
    const samples = [sample('a', { lessons: ['l'], advantage: 0 }), sample('b', { effective: false, lessons: ['m'] })];
    const now = [lesson('l', STATE_RETIRED), lesson('m')];
    expect(left(samples, [lesson('l'), lesson('m')], now)).toBeUndefined();
  });

  it('a forgotten person’s turns, what they said of another’s, and judgements that may repeat that are left out', () => {
    const samples = [
      sample('theirs'),
      sample('judged', { user: 'bob', giver: 'ann' }),
      sample('revised', { user: 'bob', revision: 2 }),
      sample('own', { user: 'bob' }),
    ];
    expect(turnsOf(left(samples, [], [], { forgotten: ['ann'] }))).toEqual(['own']);
    expect(turnsOf(left(samples, [], []))).toHaveLength(4);
  });
});

describe('which batches are repeated', () => {
  const chain = (...closed: Partial<BatchClosed>[]) => {
    const made = new BatchChain('p');
    closed.forEach((fact, at) => {
      made.closed(BatchClosed.fromPartial({ number: at + 1, ...fact }), at + 1);
    });
    return made;
  };
  const trains = (version: number, more: Partial<BatchClosed> = {}) => ({
    version: `p-v${version}`,
    parent: `p-v${version - 1}`,
    samples: [sample('a')],
    ...more,
  });
  const line = (...stages: Partial<WeightsStaged>[]) => {
    const made = new VersionLine('p');
    for (const at of [1, 2, 3]) {
      const ids = { version: `p-v${at}`, parent: `p-v${at - 1}`, batch: at };
      made.trained(WeightsTrained.fromPartial(ids), at);
    }
    stages.forEach((fact, at) => {
      made.staged(WeightsStaged.fromPartial(fact), at + 1);
    });
    return made;
  };
  const undone = (version: number) => ({ version: `p-v${version}`, stage: STAGE_BURNED, undone: true });
  const burned = (version: number) => ({ version: `p-v${version}`, stage: STAGE_BURNED });

  it('batches of versions that are burned since something is undone are repeated, and no others', () => {
    const three = chain(trains(1), trains(2), trains(3));
    expect(stepsToRepeat(three, line(burned(1), burned(2), burned(3)))).toEqual([]);
    expect(stepsToRepeat(three, line(undone(1), burned(2), undone(3)))).toEqual([1, 3]);
    // Said once more, without what they answered.
    expect(stepsToRepeat(three, line(burned(1), undone(1)))).toEqual([1]);
  });

  it('a batch is repeated once, and what is said not to be is not looked at again', () => {
    const closed = [trains(1), trains(2), trains(3), trains(4, { repeats: 1, first: 1 })];
    expect(stepsToRepeat(chain(...closed), line(undone(1), undone(2), undone(3)))).toEqual([2, 3]);
    const end = { policy: 'p', chain: chain(...closed), state: carriedState(chain(), line(), recipeWith()) };
    const said = notRepeated(end, 2, 'gone');
    expect(said).toMatchObject({ why: 'not_repeated', detail: 'gone', samples: [], repeats: 2, first: 2, number: 5 });
    expect(stepsToRepeat(chain(...closed, said), line(undone(1), undone(2), undone(3)))).toEqual([3]);
  });

  it('a batch is not repeated again where the one that repeated it has left the log, with a person', () => {
    const again = { ...trains(5, { repeats: 4, first: 1 }), number: 5 };
    expect(stepsToRepeat(chain(trains(1), again), line(undone(1)))).toEqual([]);
    expect(chain(trains(1), again).originalOf(5)).toBe(1);
  });

  it('a repetition that comes to nothing is none of new samples', () => {
    const givenUp = chain(
      trains(1),
      { ...trains(2), repeats: 1, first: 1 },
      { why: 'step_failed', repeats: 1, first: 1 },
    );
    expect(givenUp.isGivenUp()).toBe(false);
    expect(chain(trains(1), { why: 'step_failed' }).isGivenUp()).toBe(true);
  });

  it('a batch that was to start from an undone version is repeated, and one that was given up for itself is not', () => {
    const givenUp = (why: string) => chain(trains(1), trains(2), trains(3), trains(4), { why });
    const all = line(undone(1), undone(2), undone(3));
    expect(stepsToRepeat(givenUp('burned_parent'), all)).toEqual([1, 2, 3, 4]);
    expect(stepsToRepeat(givenUp('step_failed'), all)).toEqual([1, 2, 3]);
    expect(stepsToRepeat(givenUp('burned_parent'), line(burned(3)))).toEqual([]);
  });

  it('a repetition whose parent is burned for another reason is repeated', () => {
    const begun = chain(trains(1), trains(2), trains(3), trains(4, { repeats: 1, first: 1 }), { why: 'burned_parent' });
    expect(stepsToRepeat(begun, line(undone(1), burned(3)))).toEqual([4]);
  });
});
