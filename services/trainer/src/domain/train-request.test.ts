import {
  BatchClosed,
  Lesson,
  Provenance,
  SamplingParameters,
  TurnCompleted,
  TurnContinued,
} from '@backtalk/proto/facts';
import { TrainingConfig, TrainRequest } from '@backtalk/proto/training';
import { describe, expect, it } from 'vitest';

import { recipeWith } from '../testing/candidates.js';
import { completedTurn, openedTurn } from '../testing/turns.js';
import { isCut } from './candidate.js';
import { decodePlan, planOf } from './step-plan.js';
import { reportOf } from './weights-manifest.js';
import { humanMessage, stepOf, trainSample, type Built, type LeftOut, type Untaught } from './train-request.js';

const plan = decodePlan(planOf(recipeWith()).bytes) ?? {
  training: TrainingConfig.create(),
  probePrompts: [],
  rehearsalQuestions: [],
};
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

const probes = {
  plain: [[1, 2], [3]],
  told: [
    [1, 9, 2],
    [3, 9],
  ],
};

function source(turn: string, shape = {}, untaught: Untaught = ''): [string, Built | LeftOut] {
  const facts = { opened: openedTurn({ turn }), completed: completedTurn({ turn, ...shape }), continued: undefined };
  const taken = batch.samples.find((one) => one.turn === turn);
  const sample =
    taken === undefined
      ? 'missing'
      : trainSample(taken, { facts }, { plain: [7, 9], teacher: untaught === '' ? [7, 8, 9] : [], others: [] });
  return [turn, typeof sample === 'string' ? sample : { sample, untaught }];
}

function built(...sources: readonly [string, Built | LeftOut][]) {
  return new Map(sources);
}

describe('the request of a step', () => {
  it('a step’s request is the same bytes however its sources were gathered', () => {
    const one = stepOf(batch, plan, undefined, built(source('a'), source('b')), probes);
    const two = stepOf(batch, plan, undefined, built(source('b'), source('a')), probes);
    expect(TrainRequest.encode(one.request).finish()).toEqual(TrainRequest.encode(two.request).finish());
    expect(one.request).toMatchObject({
      call: 'p-7',
      version: 'p-v5',
      seed: 99,
      meanAnswerLength: 40,
      config: { klBeta: 0.25 },
      probePromptIds: [{ ids: [1, 2] }, { ids: [3] }],
      toldProbePromptIds: [{ ids: [1, 9, 2] }, { ids: [3, 9] }],
    });
  });

  it('keeps the order of the fact, gives ids alone, and finds each sample its lessons, oldest first', () => {
    const { request } = stepOf(batch, plan, undefined, built(source('b'), source('a')), probes);
    expect(request.samples).toMatchObject([
      { turn: 'a', teacherPromptIds: [7, 8, 9], hints: [], messages: new Uint8Array() },
      { turn: 'b' },
    ]);
  });

  it('an answer that was given with lessons shown goes along as one of the teacher, unless it was corrected', () => {
    const shown = [{ lesson: 'l1', text: 'one' }];
    const made = (verdict: number) => {
      const facts = { opened: undefined, completed: completedTurn({ turn: 'a', shown }), continued: undefined };
      const sample = BatchClosed.fromPartial({ samples: [{ turn: 'a', verdict }] }).samples[0];
      return sample && trainSample(sample, { facts }, { plain: [1], teacher: [1, 2], others: [] });
    };
    const { answerIds, logprobs } = completedTurn({ turn: 'a' });
    expect(made(1)).toMatchObject({ promptIds: [1], answerIds, logprobs, shown: true });
    expect(made(0)).toMatchObject({ answerIds, shown: true });
    expect(made(-1)).toMatchObject({ promptIds: [1], answerIds: [], logprobs: [], shown: true });
  });

  it('names in its report why a sample had no teacher, unless all of the sample was left out', () => {
    const sources = built(source('a', {}, 'template_mismatch'), source('b', {}, 'control_token'));
    const step = stepOf(batch, plan, undefined, sources, probes);
    const reported = (...dropped: readonly string[]) => ({
      measurements: {},
      samples: ['a', 'b'].map((turn, at) => ({
        turn,
        dropped: dropped[at] ?? '',
        divergence: 0,
        staleness: 0,
        gradientShare: 0,
        answerReplaced: false,
        hintChosen: 0,
      })),
    });
    const named = (...dropped: readonly string[]) =>
      reportOf(reported(...dropped), step).samples.map((sample) => sample.dropped);
    expect(named('', '')).toEqual(['template_mismatch', 'control_token']);
    expect(named('stale', 'unknown_ids')).toEqual(['template_mismatch', 'unknown_ids']);
  });

  it('leaves out and names what the log has lost', () => {
    const { request, leftOut } = stepOf(batch, plan, undefined, built(source('b')), probes);
    expect(request.samples.map(({ turn }) => turn)).toEqual(['b']);
    expect(leftOut).toMatchObject([{ turn: 'a', dropped: 'missing' }]);
  });

  it('leaves out and names what is larger than a sample may be', () => {
    const { request, leftOut } = stepOf(batch, plan, undefined, built(source('b'), ['a', 'too_large']), probes);
    expect(request.samples.map(({ turn }) => turn)).toEqual(['b']);
    expect(leftOut).toMatchObject([{ turn: 'a', dropped: 'too_large' }]);
  });

  it.each([
    ['length', 0, true],
    ['tool_calls', 3, true],
    ['tool_calls', 4, false],
    ['tool_calls', 0, false],
    ['stop', 3, false],
  ])(
    'an answer of three tokens that ended with %s, bounded at %i, was cut: %s',
    (finishReason, maxTokens, expected) => {
      const sampling = SamplingParameters.fromPartial({ maxTokens });
      expect(isCut(TurnCompleted.fromPartial({ finishReason, sampling, answerIds: [1, 2, 3] }))).toBe(expected);
    },
  );

  it('trains greedy answers at temperature 1 and says which were cut', () => {
    const sources = built(source('a', { temperature: 0, finishReason: 'length' }));
    expect(stepOf(batch, plan, undefined, sources, probes).request.samples[0]).toMatchObject({
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
    expect(document).toMatchObject({ recipe: { effective: 5, learnedShare: 0.9 }, training: { stepBound: 40 } });
  });

  it('asks four probes', () => {
    expect(plan.probePrompts).toHaveLength(4);
  });

  it('gives the training worker the laptop’s numbers', () => {
    expect(plan.training).toEqual({
      method: 'combined',
      opdForm: 'hybrid',
      divergence: 'jeffreys',
      teacher: 'base',
      emaDecay: 0.9,
      weightRl: 0.1,
      weightOpd: 1,
      loraRank: 8,
      loraAlpha: 16,
      learningRate: 0.002,
      adamBeta1: 0.9,
      adamBeta2: 0.98,
      weightDecay: 0,
      gradientClip: 1,
      clipLow: 0.2,
      clipHigh: 0.28,
      dualClip: 3,
      opdAdvantageClip: 2,
      topK: 20,
      toldShare: 0.5,
      distillShare: 1,
      offPolicy: 'answer_anew',
      stepBound: 40,
      klBeta: 0,
      klForm: 'full',
      maxAnswerTokens: 48,
      microBatchTokens: 512,
      optimizerSteps: 4,
      jsdBeta: 0.5,
      hintPlace: 'human',
      maxTokens: 2048,
      stalenessMax: 0.1,
      essMin: 0.3,
      maskedShareMax: 0.2,
    });
  });

  it('takes no micro-batch that is larger than the longest sample', () => {
    const bytesOf = (sampleTokensMax: number) => planOf(recipeWith({ microBatchTokens: 4_096, sampleTokensMax })).bytes;
    expect(decodePlan(bytesOf(1_500))?.training.microBatchTokens).toBe(1_500);
    expect(decodePlan(bytesOf(32_768))?.training.microBatchTokens).toBe(4_096);
  });

  it('a plan of an earlier version, which holds no recipe, is still followed', () => {
    const before = '{"training":{"method":"opd","loraRank":4},"probePrompts":["[]"]}';
    const old = decodePlan(new TextEncoder().encode(before));
    expect(old?.training).toMatchObject({ method: 'opd', loraRank: 4 });
    expect(old?.probePrompts).toHaveLength(1);
  });
});

const user = (content: string) => ({ role: 'user', content });

const { PROVENANCE_USER, PROVENANCE_CLIENT, PROVENANCE_TOOL } = Provenance;

function after(...said: readonly (readonly [Provenance, string])[]): TurnContinued {
  return TurnContinued.fromPartial({ nextState: said.map(([provenance, text]) => ({ provenance, text })) });
}

describe('the last human message', () => {
  it('the last human message of a first request stands before what its client added', () => {
    expect(humanMessage([user('Hello'), user('<<<BEGIN_CONTEXT>>>\nx\n<<<END_CONTEXT>>>')], undefined)).toBe(0);
    expect(humanMessage([user('<system-reminder>x</system-reminder>')], undefined)).toBe(-1);
  });

  it('the last human message is not the context that a client adds after it', () => {
    const repeated = 'The weather is fine, and so are the files that are open.';
    const messages = [user('Hello'), { role: 'assistant' }, user('Shorter!'), user(repeated)];
    expect(humanMessage(messages, after([PROVENANCE_USER, 'Shorter!'], [PROVENANCE_CLIENT, repeated]))).toBe(2);
  });

  it('the last human message is found where a client puts texts of its own behind it, in the same message', () => {
    const texts = ['Why is the sky blue?', '<environment_details>x</environment_details>', '<system-reminder/>'];
    const parts = { role: 'user', content: texts.map((text) => ({ type: 'text', text })) };
    const messages = [user('How do bees make honey?'), { role: 'assistant' }, parts];
    const [words = '', ...context] = texts;
    const said = context.map((text) => [PROVENANCE_CLIENT, text] as const);
    expect(humanMessage(messages, after([PROVENANCE_USER, words], ...said))).toBe(2);
  });

  it('the last human message is an earlier one when only tools spoke since', () => {
    const messages = [user('Hello'), { role: 'assistant' }, { role: 'tool' }];
    expect(humanMessage(messages, after([PROVENANCE_TOOL, 'done']))).toBe(0);
  });
});
