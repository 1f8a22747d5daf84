import { BatchClosed, Lesson } from '@backtalk/proto/facts';
import { TrainingConfig, TrainRequest } from '@backtalk/proto/training';
import { describe, expect, it } from 'vitest';

import { completedTurn, openedTurn } from '../testing/turns.js';
import { decodePlan, encodePlan, planFor } from './step-plan.js';
import { stepOf, type SampleSource } from './train-request.js';

const plan = planFor(TrainingConfig.fromPartial({ method: 'combined', loraRank: 8, learningRate: 5e-4, klBeta: 0.5 }));
const batch = BatchClosed.fromPartial({
  policy: 'p',
  number: 7,
  version: 'p-v5',
  parent: 'p-v4',
  samples: [{ turn: 'a', advantage: -1, lessons: ['l2', 'l1'] }, { turn: 'b' }],
  lessons: [
    Lesson.fromPartial({ id: 'l1', text: 'one' }),
    Lesson.fromPartial({ id: 'l2', text: 'two' }),
    Lesson.fromPartial({ id: 'l3' }),
  ],
  seed: 99,
  meanAnswerLength: 40,
  klBeta: 0.25,
});

function source(turn: string, shape = {}): SampleSource {
  const facts = { opened: openedTurn({ turn }), completed: completedTurn({ turn, ...shape }), continued: undefined };
  return { facts, messages: [{ role: 'user', content: turn }], tools: [], humanMessage: -1 };
}

describe('the request of a step', () => {
  it('is the same bytes however its sources were gathered', () => {
    const one = stepOf({
      batch,
      plan,
      parent: undefined,
      sources: new Map([
        ['a', source('a')],
        ['b', source('b')],
      ]),
    });
    const stored = decodePlan(encodePlan(plan).bytes);
    const two = stepOf({
      batch,
      plan: stored ?? plan,
      parent: undefined,
      sources: new Map([
        ['b', source('b')],
        ['a', source('a')],
      ]),
    });
    expect(TrainRequest.encode(one.request).finish()).toEqual(TrainRequest.encode(two.request).finish());
    expect(one.request).toMatchObject({
      call: 'p-7',
      version: 'p-v5',
      seed: 99,
      meanAnswerLength: 40,
      config: { klBeta: 0.25 },
    });
  });

  it('keeps the order of the fact, and shows each sample its lessons, oldest first', () => {
    const { request } = stepOf({
      batch,
      plan,
      parent: undefined,
      sources: new Map([
        ['b', source('b')],
        ['a', source('a')],
      ]),
    });
    expect(request.samples.map(({ turn, hints }) => [turn, hints])).toEqual([
      ['a', ['one', 'two']],
      ['b', []],
    ]);
  });

  it('leaves out and names what the log has lost', () => {
    const { request, leftOut } = stepOf({ batch, plan, parent: undefined, sources: new Map([['b', source('b')]]) });
    expect(request.samples.map(({ turn }) => turn)).toEqual(['b']);
    expect(leftOut).toMatchObject([{ turn: 'a', dropped: 'missing' }]);
  });

  it('trains greedy answers at temperature 1 and says which were cut', () => {
    const sources = new Map([['a', source('a', { temperature: 0, finishReason: 'length' })]]);
    expect(stepOf({ batch, plan, parent: undefined, sources }).request.samples[0]).toMatchObject({
      temperature: 1,
      cut: true,
    });
  });
});

describe('the plan of a step', () => {
  it('has a digest that every setting changes', () => {
    const other = planFor({ ...plan.training, learningRate: 6e-4 });
    expect(encodePlan(other).digest).not.toBe(encodePlan(plan).digest);
    expect(encodePlan(planFor({ ...plan.training, klBeta: 0.9 })).digest).toBe(encodePlan(plan).digest);
  });

  it('asks four probes', () => {
    expect(plan.probePrompts).toHaveLength(4);
  });
});
