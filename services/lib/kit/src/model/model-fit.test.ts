import { expect, it } from 'vitest';
import { fitOf, type Wanted } from './model-fit.js';
import { modelConfig, parametersOf } from './model-config.js';
import { sampleBytes, sampleTokensIn } from './model-memory.js';

/** The shape of Qwen3-4B: 4.02B parameters, and 147,456 bytes of keys and values a position. */
const shape = modelConfig.parse({
  architectures: ['Qwen3ForCausalLM'],
  max_position_embeddings: 40_960,
  vocab_size: 151_936,
  hidden_size: 2_560,
  intermediate_size: 9_728,
  num_hidden_layers: 36,
  num_attention_heads: 32,
  num_key_value_heads: 8,
  head_dim: 128,
  tie_word_embeddings: true,
});
const parameters = parametersOf(shape) ?? 0;
const wanted: Omit<Wanted, 'cardBytes'> = {
  contextTokens: 32_768,
  conversations: 1,
  rank: 16,
  sampleTokens: 32_768,
  versions: 4,
};
const fitOn = (cardBytes: number, other: Partial<typeof wanted> = {}) =>
  fitOf(shape, parameters, { shape, parameters }, { cardBytes, ...wanted, ...other });

it('gives weights two bytes a number, and keys and values two for every position of every conversation', () => {
  const { serving, training } = fitOn(24e9, { conversations: 3 });
  expect(serving).toMatchObject({ weights: 8_044_936_192, 'keys and values': 3 * 32_768 * 147_456 });
  expect(training['weights']).toBe(serving['weights']);
});

it('linear layers in four bits take .516 of a byte a number, and the judge stays whole', () => {
  const linear = 36 * 2_560 * (4_096 + 1_024 + 1_024 + 4_096 + 3 * 9_728);
  const whole = parameters - linear + 2_560 * 9_728;
  const { serving, judge, training } = fitOn(24e9, { quantization: 'nf4' });
  expect(serving['weights']).toBeCloseTo(2 * whole + linear * (0.5 + (1 + 4 / 256) / 64), 0);
  expect(training['weights']).toBe(serving['weights']);
  expect(judge['weights']).toBe(2 * parameters);
  // Whole weights leave no room for steps beside an engine on such a card.
  expect(fitOn(24e9, { contextTokens: 8_192 }).placements[0]?.fits).toBe('no');
  expect(fitOn(24e9, { contextTokens: 8_192, quantization: 'nf4' }).placements[0]?.fits).not.toBe('no');
});

it('says of small cards how long samples may be, of large ones that all fits on one, and of tiny ones that nothing does', () => {
  const [shared, apart] = fitOn(24e9).placements;
  expect(shared).toMatchObject({ cards: 1, fits: 'no', sampleTokens: 0 });
  expect(apart).toMatchObject({ cards: 2, fits: 'shorter' });
  expect(apart?.sampleTokens).toBeLessThan(32_768);
  expect(fitOn(80e9).placements.map(({ fits }) => fits)).toEqual(['yes', 'yes', 'yes']);
  expect(fitOn(8e9).placements.map(({ fits }) => fits)).toEqual(['no', 'no', 'no']);
});

it('the longest sample that it names fits, and one token more does not', () => {
  const cardBytes = 24e9;
  const longest = fitOn(cardBytes).placements[1]?.sampleTokens ?? 0;
  expect(fitOn(cardBytes, { sampleTokens: longest }).placements[1]?.fits).toBe('yes');
  expect(fitOn(cardBytes, { sampleTokens: longest + 1 }).placements[1]?.fits).toBe('shorter');
});

it('an engine that one card does not hold is split over as few as hold it', () => {
  const many = fitOn(24e9, { conversations: 8 }).placements[1];
  expect(many).toMatchObject({ cards: 5, fits: 'shorter' });
  expect(many?.bytes).toBeGreaterThan(20e9);
});

it.each([1, 100, 1_000, 5_000, 40_000])('the bytes that %d tokens take hold as many tokens', (tokens) => {
  const bytes = sampleBytes(shape, tokens, 2);
  const held = sampleTokensIn(shape, bytes, 2);
  // Between short samples, of which all layers stand, and long ones, a bound serves many lengths.
  expect(held).toBeGreaterThanOrEqual(tokens);
  expect(sampleBytes(shape, held, 2)).toBeLessThanOrEqual(bytes);
});
