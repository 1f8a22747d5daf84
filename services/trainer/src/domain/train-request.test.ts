import { BatchClosed, Lesson, Provenance, TurnContinued } from '@backtalk/proto/facts';
import { TrainingConfig, TrainRequest } from '@backtalk/proto/training';
import { describe, expect, it } from 'vitest';

import { recipeWith } from '../testing/candidates.js';
import { completedTurn, openedTurn } from '../testing/turns.js';
import { decodePlan, planOf } from './step-plan.js';
import { humanMessage, stepOf, trainSample, type SampleSource } from './train-request.js';

const plan = decodePlan(planOf(recipeWith()).bytes) ?? { training: TrainingConfig.create(), probePrompts: [] };
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

function built(...sources: readonly SampleSource[]) {
  const samples = sources.map((each) => {
    const turn = each.facts.opened?.turn ?? '';
    const sample = batch.samples.find((one) => one.turn === turn);
    return [turn, sample === undefined ? 'missing' : trainSample(sample, batch, each)] as const;
  });
  return new Map(samples);
}

describe('the request of a step', () => {
  it('a step’s request is the same bytes however its sources were gathered', () => {
    const one = stepOf(batch, plan, undefined, built(source('a'), source('b')));
    const two = stepOf(batch, plan, undefined, built(source('b'), source('a')));
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
    const { request } = stepOf(batch, plan, undefined, built(source('b'), source('a')));
    expect(request.samples.map(({ turn, hints }) => [turn, hints])).toEqual([
      ['a', ['one', 'two']],
      ['b', []],
    ]);
  });

  it('leaves out and names what the log has lost', () => {
    const { request, leftOut } = stepOf(batch, plan, undefined, built(source('b')));
    expect(request.samples.map(({ turn }) => turn)).toEqual(['b']);
    expect(leftOut).toMatchObject([{ turn: 'a', dropped: 'missing' }]);
  });

  it('leaves out and names what is larger than a sample may be', () => {
    const { request, leftOut } = stepOf(batch, plan, undefined, new Map([...built(source('b')), ['a', 'too_large']]));
    expect(request.samples.map(({ turn }) => turn)).toEqual(['b']);
    expect(leftOut).toMatchObject([{ turn: 'a', dropped: 'too_large' }]);
  });

  it('trains greedy answers at temperature 1 and says which were cut', () => {
    const sources = built(source('a', { temperature: 0, finishReason: 'length' }));
    expect(stepOf(batch, plan, undefined, sources).request.samples[0]).toMatchObject({
      temperature: 1,
      cut: true,
    });
  });
});

describe('the plan of a step', () => {
  it('a plan has a digest that every number of the recipe changes', () => {
    const { digest } = planOf(recipeWith());
    expect(planOf(recipeWith({ learningRate: 6e-4 })).digest).not.toBe(digest);
    expect(planOf(recipeWith({ lessonScope: 'policy' })).digest).not.toBe(digest);
    expect(planOf(recipeWith()).digest).toBe(digest);
  });

  it('holds the whole recipe in words that a reader finds', () => {
    const document: unknown = JSON.parse(new TextDecoder().decode(planOf(recipeWith({ effective: 5 })).bytes));
    expect(document).toMatchObject({ recipe: { effective: 5, learnedNats: 2 }, training: { stepBound: 1 } });
  });

  it('asks four probes', () => {
    expect(plan.probePrompts).toHaveLength(4);
  });

  it('gives the training worker the numbers that installations before the recipe gave it', () => {
    expect(plan.training).toEqual({
      method: 'combined',
      opdForm: 'full',
      divergence: 'reverse_kl',
      weightRl: 0.1,
      weightOpd: 1,
      loraRank: 8,
      loraAlpha: 16,
      learningRate: 0.0005,
      adamBeta1: 0.9,
      adamBeta2: 0.98,
      weightDecay: 0,
      gradientClip: 1,
      clipLow: 0.2,
      clipHigh: 0.28,
      dualClip: 3,
      opdAdvantageClip: 2,
      stepBound: 1,
      klBeta: 0,
      klForm: 'full',
      maxAnswerTokens: 32,
      microBatchTokens: 512,
      optimizerSteps: 1,
      jsdBeta: 0.5,
      hintPlace: 'human',
      maxTokens: 2048,
      stalenessMax: 0.1,
    });
  });

  it('a plan of an earlier version, which holds no recipe, is still followed', () => {
    const before = '{"training":{"method":"opd","loraRank":4},"probePrompts":["[]"]}';
    const old = decodePlan(new TextEncoder().encode(before));
    expect(old?.training).toMatchObject({ method: 'opd', loraRank: 4 });
    expect(old?.probePrompts).toHaveLength(1);
  });
});

const user = (content: string) => ({ role: 'user', content });

function after(...provenances: readonly Provenance[]): TurnContinued {
  return TurnContinued.fromPartial({ nextState: provenances.map((provenance) => ({ provenance })) });
}

describe('the last human message', () => {
  it('the last human message of a first request stands before what its client added', () => {
    expect(humanMessage([user('Hello'), user('<<<BEGIN_CONTEXT>>>\nx\n<<<END_CONTEXT>>>')], undefined)).toBe(0);
    expect(humanMessage([user('<system-reminder>x</system-reminder>')], undefined)).toBe(-1);
  });

  it('the last human message is not the context that a client adds after it', () => {
    const messages = [user('Hello'), { role: 'assistant' }, user('Shorter!'), user('<context/>')];
    expect(humanMessage(messages, after(Provenance.PROVENANCE_USER, Provenance.PROVENANCE_CLIENT))).toBe(2);
  });

  it('the last human message is an earlier one when only tools spoke since', () => {
    const messages = [user('Hello'), { role: 'assistant' }, { role: 'tool' }];
    expect(humanMessage(messages, after(Provenance.PROVENANCE_TOOL))).toBe(0);
  });
});
