import { modelConfig, parametersOf, usableShare } from '@backtalk/kit';
import { describe, expect, it } from 'vitest';
import { cardsOfFlag } from './box-cards.js';
import { boxPlan, type BoxPlan, type BoxWanted, type PlannedModel } from './box-plan.js';
import { boxSaid } from './box-variables.js';

/** A model of Qwen3-4B's widths, with so many layers. */
function modelOf(name: string, layers: number, heads = 32): PlannedModel {
  const shape = modelConfig.parse({
    architectures: ['Qwen3ForCausalLM'],
    max_position_embeddings: 40_960,
    vocab_size: 151_936,
    hidden_size: 2_560,
    intermediate_size: 9_728,
    num_hidden_layers: layers,
    num_attention_heads: heads,
    num_key_value_heads: 8,
    head_dim: 128,
    tie_word_embeddings: true,
  });
  return { name, folder: `/models/${name}`, shape, parameters: parametersOf(shape) ?? 0 };
}

const policy = modelOf('qwen3-4b', 36);
const reader = modelOf('reader', 36);

function planned(cards: string, said: Readonly<Record<string, string>> = {}, other: Partial<BoxWanted> = {}): BoxPlan {
  const usual = { model: policy, rank: 16, policies: 1, trainsOnCard: true };
  return boxPlan({ cards: cardsOfFlag(cards), said: boxSaid(said), ...usual, ...other });
}

const placesOf = ({ engines, judge, training, idle }: BoxPlan) => ({
  engines: engines.map(({ cards }) => cards),
  judge: judge?.cards,
  training: training?.cards,
  idle,
});

/** Bytes that were given away of each card, by its index. */
function takenOf({ engines, judge, training }: BoxPlan): ReadonlyMap<number, number> {
  const taken = new Map<number, number>();
  const take = (card: number, bytes: number) => taken.set(card, (taken.get(card) ?? 0) + bytes);
  for (const { cards, bytes } of [...engines, ...(judge === undefined ? [] : [judge])])
    for (const card of cards) take(card, bytes);
  if (training !== undefined) for (const card of training.cards) take(card, training.bytes);
  return taken;
}

describe('the split of the cards', () => {
  it('the seeds’ defaults put two cards to serving, two to the judge and four to training, which take each step together', () => {
    const said = { NUM_GPUS: '8', ACTOR_GPUS: '4', ROLLOUT_GPUS: '2', PRM_GPUS: '2', TP: '2' };
    const plan = planned('8x80GB', said, { judge: reader });
    expect(placesOf(plan)).toEqual({ engines: [[0, 1]], judge: [2, 3], training: [4, 5, 6, 7], idle: [] });
    expect(Object.fromEntries(plan.reasons)['training']).toMatch(
      /^cards 4, 5, 6, 7 take each step together, a process on each, samples up to \d+ tokens \(ACTOR_GPUS=4\)$/,
    );
  });

  it('one card trains without a word and every other serves, each with an engine of its own', () => {
    expect(placesOf(planned('4x80GB'))).toEqual({
      engines: [[0], [1], [2]],
      judge: undefined,
      training: [3],
      idle: [],
    });
  });

  it('ROLLOUT_GPUS says how many serve, and what it leaves stands idle', () => {
    const plan = planned('4x80GB', { ACTOR_GPUS: '1', ROLLOUT_GPUS: '1' });
    expect(placesOf(plan)).toMatchObject({ engines: [[0]], training: [1], idle: [2, 3] });
  });

  it('a judge of another model has a card of its own where there are three, and shares the serving one of two', () => {
    expect(placesOf(planned('3x80GB', {}, { judge: reader }))).toMatchObject({
      engines: [[0]],
      judge: [1],
      training: [2],
    });
    expect(placesOf(planned('2x80GB', {}, { judge: reader }))).toMatchObject({
      engines: [[0]],
      judge: [0],
      training: [1],
    });
  });

  it('PRM_GPUS without a model gives the base model an engine that judges alone', () => {
    const { judge } = planned('3x80GB', { PRM_GPUS: '1' });
    expect(judge).toMatchObject({ model: { name: 'qwen3-4b' }, cards: [1] });
  });

  it('an engine is split over as few cards as hold it, and TP says otherwise', () => {
    expect(placesOf(planned('5x16GB'))).toMatchObject({
      engines: [
        [0, 1],
        [2, 3],
      ],
      training: [4],
    });
    expect(placesOf(planned('5x80GB', { TP: '4' }))).toMatchObject({ engines: [[0, 1, 2, 3]], training: [4] });
  });

  it('steps on the CPU leave every card to serving', () => {
    const plan = planned('2x24GB', {}, { trainsOnCard: false });
    expect(placesOf(plan)).toEqual({ engines: [[0], [1]], judge: undefined, training: undefined, idle: [] });
  });
});

describe('memory of the cards', () => {
  it.each([
    ['1x80GB', {}],
    ['1x24GB', {}],
    ['2x80GB', { judge: reader }],
    ['1x80GB', { judge: reader }],
    ['2x80GB,1x24GB', {}],
  ])('what shares a card of %s, %j, stays within what can be used of it', (cards, other) => {
    const plan = planned(cards, {}, other);
    const bytesOf = new Map(cardsOfFlag(cards).map(({ index, bytes }) => [index, bytes]));
    for (const [card, taken] of takenOf(plan))
      expect(taken).toBeLessThanOrEqual(usableShare * (bytesOf.get(card) ?? 0) + 1);
  });

  it('a small card that all share gets a shorter context, and samples of half of it at least', () => {
    const { engines, training } = planned('24GB');
    expect(engines[0]?.contextTokens).toBeLessThan(32_768);
    expect(training?.sampleTokens).toBeGreaterThanOrEqual((engines[0]?.contextTokens ?? 0) / 2);
  });

  it('MEM_FRACTION_STATIC lowers the engines’ share, and CONTEXT_LENGTH says the context', () => {
    const { engines } = planned('2x80GB', { MEM_FRACTION_STATIC: '0.5', CONTEXT_LENGTH: '40960' });
    expect(engines[0]).toMatchObject({ share: 0.5, contextTokens: 40_960 });
  });
});

describe('what does not fit or contradicts itself is one line that says what to do', () => {
  it.each<[string, Readonly<Record<string, string>>, string]>([
    [
      '8x80GB',
      { NUM_GPUS: '8', ACTOR_GPUS: '4', ROLLOUT_GPUS: '2', PRM_GPUS: '3' },
      'ACTOR_GPUS=4 + ROLLOUT_GPUS=2 + PRM_GPUS=3 make 9 cards, and NUM_GPUS is 8: lower one of them.',
    ],
    [
      '1x80GB',
      { ACTOR_GPUS: '1', ROLLOUT_GPUS: '1' },
      'ACTOR_GPUS=1 + ROLLOUT_GPUS=1 make 2 cards, and 1 card is here: leave them out, and all share the card.',
    ],
    ['4x80GB', { NUM_GPUS: '8' }, 'NUM_GPUS=8, and 4 cards are here: lower it, or leave it out.'],
    ['4x80GB', { ACTOR_GPUS: '4' }, 'no card is left to serve, and the others have all 4: ROLLOUT_GPUS=1 or more.'],
    ['4x80GB', { TP: '3' }, 'TP=3 does not divide the 32 attention heads of qwen3-4b.'],
    ['8x80GB', { ROLLOUT_GPUS: '3', TP: '2' }, 'TP=2 cards an engine, and ROLLOUT_GPUS is 3: TP has to divide them.'],
    ['80GB', { CONTEXT_LENGTH: '50000' }, 'CONTEXT_LENGTH=50000, and qwen3-4b has 40960 positions.'],
    ['2x80GB', { MEM_FRACTION_STATIC: '0.1' }, 'MEM_FRACTION_STATIC=0.1 leaves 8.0 GB of a card, and qwen3-4b needs'],
    [
      '2x8GB',
      {},
      'qwen3-4b with a context of 1024 tokens needs 10.5 GB of a card, and 7.4 GB can be used: give it more cards (ROLLOUT_GPUS, TP), or a smaller HF_CKPT.',
    ],
    [
      '24GB',
      { CONTEXT_LENGTH: '32768' },
      'on a card that it shares, where 6.9 GB are left: give it a card of its own (NUM_GPUS=2 or more, ACTOR_GPUS=1), a lower CONTEXT_LENGTH, or a smaller HF_CKPT.',
    ],
    ['80GB', { NUM_GPUS: 'all' }, 'NUM_GPUS=all is no whole number of 1 or more.'],
    ['80GB', { PRM_M: '16' }, 'PRM_M=16 is no whole number of 1 to 15.'],
    ['80GB', { MEM_FRACTION_STATIC: '85' }, 'MEM_FRACTION_STATIC=85 is no share of a card'],
  ])('refuses %s with %j', (cards, said, line) => {
    expect(() => planned(cards, said)).toThrow(line);
    expect(() => planned(cards, said)).toThrow(/^--profile gpu: [^\n]+\.$/);
  });

  it('refuses a judge that its cards do not hold', () => {
    const judge = modelOf('reader-42b', 420);
    expect(() => planned('3x80GB', { PRM_GPUS: '1' }, { judge })).toThrow(
      /^--profile gpu: reader-42b, which judges, needs [\d.]+ GB of a card, and 73\.6 GB can be used: PRM_GPUS=2, or a smaller PRM_MODEL_PATH\.$/,
    );
  });
});
