import {
  BatchClosed,
  Lesson_State,
  LessonChanged,
  LessonChanged_Action,
  StepFigures,
  WeightsTrained,
} from '@backtalk/proto/facts';
import { describe, expect, it } from 'vitest';

import { candidate, learningContext, recipeWith } from '../testing/candidates.js';
import { BatchChain } from './batch-chain.js';
import {
  batchSeed,
  givenUp,
  lessonsBatch,
  settlingBatch,
  trainingBatch,
  turnsSettled,
  wishesOf,
  type ChainEnd,
} from './batch-fact.js';
import { decideBatch, type TrainDecision } from './batch-rule.js';
import { carriedState } from './carried-state.js';
import { withWishes } from './lesson-ledger.js';
import { relateByWords } from './lexical-relation.js';
import { VersionLine } from './version-line.js';
import { weighTurns } from './weigh-turns.js';

const stepFact = { parent: 'backtalk-v0', planDigest: 'plan', seed: 0 };

function chainEnd(chain = new BatchChain('backtalk')): ChainEnd {
  return { policy: 'backtalk', chain, state: carriedState(chain, new VersionLine('backtalk'), recipeWith()) };
}

function decision(stands = true): TrainDecision {
  const corrected = Array.from({ length: 8 }, (_, n) =>
    candidate({ turn: `c${n}`, hint: 'Answer in one brief sentence.', stands }, n),
  );
  const praised = Array.from({ length: 2 }, (_, n) => candidate({ turn: `p${n}`, verdict: 0 }, 100 + n));
  const untrainable = candidate({ turn: 'u', reasons: ['aborted'] }, 200);
  const decided = decideBatch(
    weighTurns([...corrected, ...praised, untrainable], learningContext(), recipeWith()),
    recipeWith(),
    0,
  );
  if (decided.kind !== 'train') throw new TypeError(`expected a batch, not ${decided.kind}`);
  return decided;
}

function trained(decided: TrainDecision): BatchClosed {
  const lessons = withWishes([], wishesOf(decided), 'user', { batch: 1, relate: relateByWords, questions: new Map() });
  return trainingBatch(chainEnd(), decided, recipeWith(), stepFact, lessons);
}

describe('a batch that is trained', () => {
  const fact = trained(decision());

  it('names samples, anchors, settled turns, parent, version and seed', () => {
    expect(fact).toMatchObject({
      number: 1,
      version: 'backtalk-v1',
      parent: 'backtalk-v0',
      why: 'full',
      configDigest: 'plan',
      meanAnswerLength: 40,
    });
    expect(fact.seed).toBe(batchSeed('backtalk', 1, 0));
    expect(fact.samples.map(({ turn, effective }) => [turn, effective])).toEqual([
      ...Array.from({ length: 8 }, (_, n) => [`c${n}`, true]),
      ['p0', false],
      ['p1', false],
    ]);
    expect(fact.settled).toMatchObject([{ turn: 'u', reason: 'aborted' }]);
  });

  it('a trained batch begins the lesson, for anchors too', () => {
    expect(fact.lessons).toMatchObject([{ state: Lesson_State.STATE_ACTIVE, hints: 8, firstTurn: 'c0' }]);
    expect(new Set(fact.samples.map(({ lessons }) => lessons.join()))).toEqual(new Set([fact.lessons[0]?.id]));
  });

  it('shows hindsight to its own sample alone, and keeps no anchor where no lesson is in force', () => {
    const unsaid = trained(decision(false));
    expect(unsaid.lessons).toMatchObject([{ state: Lesson_State.STATE_HEARD, hints: 8 }]);
    expect(unsaid.samples.map(({ lessons, hindsight }) => [lessons, hindsight])).toEqual(
      Array(8).fill([[], 'Answer in one brief sentence.']),
    );
    expect(unsaid.settled.map(({ turn, reason }) => [turn, reason])).toEqual([
      ['u', 'aborted'],
      ['p0', 'nothing_to_learn'],
      ['p1', 'nothing_to_learn'],
    ]);
    expect(new Set(fact.samples.map(({ hindsight }) => hindsight))).toEqual(new Set(['']));
  });

  it('makes no lesson of feedback on the turn of another person', () => {
    const given = candidate({ turn: 'g', user: 'a', hint: 'Use tables.', stands: true, judged: { giver: 'b' } });
    const weighed = { candidate: given, advantage: -1, hinted: true, wished: false, back: 0 };
    const alone: TrainDecision = { kind: 'train', why: 'full', effective: [weighed], anchors: [], settled: [] };
    const batch = trained(alone);
    expect(batch.lessons).toEqual([]);
    expect(batch.samples[0]).toMatchObject({ lessons: [], hindsight: 'Use tables.' });
  });

  it('a wish becomes its own user’s lesson, whatever another person scores and writes on the turn', () => {
    const own = { text: 'Answer in one sentence.', stands: true, bare: false };
    for (const verdict of [-1, 0, 1]) {
      const judged = { giver: 'b', wish: own };
      const given = candidate({ turn: 'g', user: 'a', verdict, hint: 'Use tables.', stands: true, judged });
      const weighed = { candidate: given, advantage: verdict, hinted: true, wished: true, back: 0 };
      const batch = trained({ kind: 'train', why: 'full', effective: [weighed], anchors: [], settled: [] });
      expect(batch.lessons).toMatchObject([
        { text: 'Answer in one sentence.', scopeUser: 'a', state: Lesson_State.STATE_ACTIVE },
      ]);
      expect(batch.samples[0]).toMatchObject({ giver: 'b', hindsight: 'Use tables.' });
    }
  });

  it('the later of two wishes that cannot both hold stands, whichever version answered', () => {
    const said = (hint: string, sequence: number, back: number) => {
      const waited = candidate({ turn: hint, hint, stands: true }, sequence);
      return { candidate: waited, advantage: -1, hinted: true, wished: true, back };
    };
    const effective = [said('Never use emojis.', 2, 0), said('Always use emojis.', 1, 1)];
    const decided: TrainDecision = { kind: 'train', why: 'full', effective, anchors: [], settled: [] };
    expect(wishesOf(decided).map(({ text }) => text)).toEqual(['Always use emojis.', 'Never use emojis.']);
    const [older, newer] = effective.toReversed().map(({ candidate: one }, at) => ({ ...one, saidAtMs: 9 - at }));
    const late = [older, newer].flatMap((one) => (one === undefined ? [] : [{ ...said('', 0, 0), candidate: one }]));
    expect(wishesOf({ effective: late }).map(({ text }) => text)).toEqual(['Never use emojis.', 'Always use emojis.']);
  });

  it('leaves its own verdicts to the baselines of later batches', () => {
    expect(new Set(fact.samples.filter(({ effective }) => effective).map(({ advantage }) => advantage))).toEqual(
      new Set([-1]),
    );
    expect(fact.baselines).toMatchObject([{ user: 'user0', mean: -1, count: 8 }]);
  });

  it('an answer that was given with lessons shown moves no baseline, and its sample says so', () => {
    const shown = [{ lesson: '', text: 'Be brief.' }];
    const own = decision();
    const [first, ...others] = own.effective;
    if (first === undefined) throw new TypeError('expected a sample');
    const told = trained({ ...own, effective: [{ ...first, candidate: { ...first.candidate, shown } }, ...others] });
    expect(told.baselines).toMatchObject([{ user: 'user0', mean: -1, count: 7 }]);
    expect(told.samples.filter((sample) => sample.shown).map(({ turn }) => turn)).toEqual(['c0']);
  });

  it('a step of an attempt stands in its batch with its reward, which moves the mean of steps and no mean of verdicts', () => {
    const attempt = { group: 'g', attempt: 'session0', step: 2, reward: 1.5 };
    const figures = StepFigures.fromPartial({
      group: 'g',
      step: 2,
      user: 'user0',
      mean: 0.5,
      deviation: 0.5,
      count: 2,
    });
    const own = decision(false);
    const [first, second, ...others] = own.effective;
    if (first === undefined || second === undefined) throw new TypeError('expected samples');
    const step = { attempt, ofGroup: [figures] };
    const batch = trained({ ...own, effective: [{ ...first, advantage: 2, step }, second, ...others] });
    expect(batch.samples[0]).toMatchObject({ advantage: 2, attempt });
    expect(batch.samples[1]?.attempt).toBeUndefined();
    expect(batch.baselines).toMatchObject([{ user: 'user0', mean: -1, count: 7, stepMean: 1.5, stepCount: 1 }]);
    expect(batch.steps).toEqual([figures]);
    // One that is settled is taken, too, and figures stay in facts without samples.
    const chain = new BatchChain('backtalk');
    chain.closed(batch, 1);
    const other = { attempt, ofGroup: [{ ...figures, step: 3 }] };
    const settled = turnsSettled(chainEnd(chain), [{ candidate: first.candidate, reason: 'stale', step: other }]);
    expect(settled.steps.map(({ step: at }) => at)).toEqual([2, 3]);
    expect(BatchClosed.decode(BatchClosed.encode(batch).finish())).toEqual(batch);
  });

  it('a batch’s fact survives its own encoding', () => {
    expect(BatchClosed.decode(BatchClosed.encode(fact).finish())).toEqual(fact);
  });
});

describe('a fact that takes in what was said of lessons', () => {
  it('a fact of lessons has no step, and says up to where it has read', () => {
    const message = LessonChanged.fromPartial({
      action: LessonChanged_Action.ACTION_ADD,
      lesson: 'given',
      tenant: 'tenant0',
      text: 'Use tables.',
    });
    const fact = lessonsBatch(chainEnd(), [{ message, sequence: 12, timeMs: 0 }], relateByWords);
    expect(fact).toMatchObject({ why: 'lessons', samples: [], settled: [], version: '', lessonsThrough: 12 });
    expect(fact.lessons).toMatchObject([{ id: 'given', state: Lesson_State.STATE_ACTIVE }]);
  });
});

describe('a person who is forgotten', () => {
  it('figures of a forgotten person’s attempts leave the ledger with them, and those of others stay', () => {
    const chain = new BatchChain('backtalk');
    const steps = ['ada', 'ben'].map((user) => StepFigures.fromPartial({ group: `of ${user}`, user, count: 2 }));
    chain.closed(BatchClosed.fromPartial({ policy: 'backtalk', number: 1, steps }), 1);
    const action = LessonChanged_Action.ACTION_ERASE;
    const message = LessonChanged.fromPartial({ action, tenant: 'tenant0', user: 'ada' });
    const fact = lessonsBatch(chainEnd(chain), [{ message, sequence: 12, timeMs: 0 }], relateByWords);
    expect(fact.steps.map(({ user }) => user)).toEqual(['ben']);
  });
});

describe('what the next fact carries on', () => {
  const chain = new BatchChain('backtalk');
  const first = trained(decision());
  chain.closed(first, 1);
  chain.trained(
    WeightsTrained.fromPartial({
      batch: 1,
      report: {
        measurements: { kl_base: 40 },
        samples: first.samples.map(({ turn }, n) => ({ turn, dropped: '', divergence: n < 5 ? 10 : 14 })),
      },
    }),
    2,
  );

  it('the next fact carries the ledger, moved on by the report of the step', () => {
    const next = settlingBatch(chainEnd(chain), [], 'settled');
    expect(next.lessons[0]?.steps).toBe(4);
    expect(next.klBeta).toBe(0.001);
    expect(next).toMatchObject({
      number: 2,
      version: '',
      samples: [],
      meanAnswerLength: 40,
      baselines: first.baselines,
    });
  });

  it('takes a report in once', () => {
    chain.closed(settlingBatch(chainEnd(chain), [], 'settled'), 3);
    expect(settlingBatch(chainEnd(chain), [], 'settled').lessons[0]?.steps).toBe(4);
  });

  it('settles the samples of a step that failed', () => {
    expect(givenUp(first, 'step_failed')).toHaveLength(first.samples.length);
    expect(givenUp(first, 'step_failed')[0]).toMatchObject({ turn: 'c0', reason: 'step_failed' });
  });
});
