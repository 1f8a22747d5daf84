import { mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { TemporaryDirectory } from '@backtalk/kit/testing';
import { afterAll, beforeEach, describe, expect, it } from 'vitest';
import { readBaseModel } from './base-model.js';
import type { Room } from '@backtalk/kit';

const directory = new TemporaryDirectory('base-model');
const folder = directory.join('tiny-llama');
const roomy = 64e9;

afterAll(() => {
  directory.remove();
});

const put = (name: string, content: string | Uint8Array) => {
  writeFileSync(join(folder, name), content);
};
const small = { hidden_size: 64, intermediate_size: 128, num_hidden_layers: 2, num_attention_heads: 4 };
const config = (more: object = {}) => {
  const own = { architectures: ['LlamaForCausalLM'], max_position_embeddings: 4_096, ...small };
  put('config.json', JSON.stringify({ ...own, ...more }));
};
/** The shape of a model of 8B, of which each position in the engine takes 294,912 bytes and each token of a step 1,196,032, beside 1.5 GB for every step. */
const large = {
  architectures: ['Qwen3ForCausalLM'],
  max_position_embeddings: 131_072,
  hidden_size: 4_096,
  intermediate_size: 12_288,
  num_hidden_layers: 36,
  num_attention_heads: 32,
  num_key_value_heads: 8,
  head_dim: 128,
};

/** A file whose header names tensors of so many parameters; the header is all that is read. */
function weights(name: string, ...shapes: readonly number[][]): void {
  const tensors = shapes.map((shape, at) => [`layer.${String(at)}`, { dtype: 'F32', shape, data_offsets: [0, 0] }]);
  const text = Buffer.from(JSON.stringify({ __metadata__: {}, ...Object.fromEntries(tensors) }));
  const length = Buffer.alloc(8);
  length.writeBigUInt64LE(BigInt(text.byteLength));
  put(name, Buffer.concat([length, text]));
}

beforeEach(() => {
  rmSync(folder, { recursive: true, force: true });
  mkdirSync(folder, { recursive: true });
  config();
  put('tokenizer.json', '{}');
  put('tokenizer_config.json', JSON.stringify({ chat_template: '{{ messages }}' }));
  weights('model.safetensors', [1_000, 1_000], [500]);
});

describe('a base model of one’s own', () => {
  it('gives its name, size, context and recipe, each with its reason', () => {
    const base = readBaseModel(folder, { freeBytes: roomy });
    expect(base).toMatchObject({ name: 'tiny-llama', parameters: 1_000_500, contextTokens: 4_096, recipe: 'tiny' });
    expect(base).toMatchObject({ kvTokens: 16_384, sampleTokens: 4_096 });
    expect(base.reasons.map(([what]) => what)).toEqual(['context', 'samples', 'recipe', 'memory']);
  });

  it('adds up weights in several files, takes the recipe of its size, and bounds context and samples', () => {
    config({ max_position_embeddings: 131_072 });
    weights('model-2.safetensors', [100_000, 4_000]);
    expect(readBaseModel(folder, { freeBytes: roomy })).toMatchObject({
      parameters: 401_000_500,
      contextTokens: 32_768,
      sampleTokens: 16_384,
      recipe: 'small',
    });
  });

  it.each([
    ['Llama', 'LlamaForCausalLM'],
    ['Mistral', 'MistralForCausalLM'],
    ['Qwen2', 'Qwen2ForCausalLM'],
    ['Qwen3', 'Qwen3ForCausalLM'],
    ['Gemma 3', 'Gemma3ForCausalLM'],
  ])('takes models of the architecture %s', (_, architecture) => {
    config({ architectures: [architecture] });
    expect(readBaseModel(folder, { freeBytes: roomy }).name).toBe('tiny-llama');
  });

  // 2 GB and eight bytes a parameter go before; of the rest, half at most to keys and values, what they leave to a step.
  it.each([
    [22e9, { contextTokens: 32_768, kvTokens: 32_768, sampleTokens: 7_362 }],
    [8e9, { contextTokens: 10_158, kvTokens: 10_158, sampleTokens: 1_232 }],
  ])('derives context and longest sample from %d bytes of free memory', (freeBytes, bounds) => {
    config(large);
    expect(readBaseModel(folder, { freeBytes })).toMatchObject(bounds);
  });

  it.each<[string, Partial<Room>, object]>([
    [
      'an engine elsewhere has its own context and memory',
      { engineContext: 16_000 },
      { contextTokens: 16_000, kvTokens: 0, sampleTokens: 16_000 },
    ],
    ['an engine elsewhere says no context', { engineContext: 0 }, { contextTokens: 131_072, sampleTokens: 16_384 }],
    [
      'steps compute on a card',
      { card: { freeBytes: 20e9, numberBytes: 4 } },
      { contextTokens: 32_768, sampleTokens: 15_445 },
    ],
    [
      'both are elsewhere',
      { freeBytes: 4e9, engineContext: 0, card: { freeBytes: 60e9, numberBytes: 2 } },
      { contextTokens: 131_072, kvTokens: 0, sampleTokens: 32_768 },
    ],
  ])('bounds follow from what is left where %s', (_, room, bounds) => {
    config(large);
    expect(readBaseModel(folder, { freeBytes: roomy, ...room })).toMatchObject(bounds);
  });

  it('says in which memory what stands, and refuses a card that is too small for a step', () => {
    config(large);
    const card = { freeBytes: 60e9, numberBytes: 2 };
    const { reasons } = readBaseModel(folder, { freeBytes: 4e9, engineContext: 0, card });
    expect(reasons).toContainEqual(['memory', 'all else 2.0 GB, on the card weights 0.0 GB and a step 31.1 GB']);
    const small = { freeBytes: roomy, card: { freeBytes: 0.5e9, numberBytes: 2 } };
    expect(() => readBaseModel(folder, small)).toThrow(
      "a step needs 2.8 GB of the card's memory, and 0.5 GB are free (--device cpu computes in this machine's).",
    );
  });

  it.each([
    ['no config.json', () => rmSync(join(folder, 'config.json')), /it has no config\.json/],
    ['a config.json that is cut', () => put('config.json', '{"architectures"'), /it has no config\.json/],
    ['another architecture', () => config({ architectures: ['MambaForCausalLM'] }), /architecture is MambaForCausalLM/],
    [
      'a small context',
      () => config({ max_position_embeddings: 512 }),
      /context is 512 tokens, and 1024 are the least/,
    ],
    ['no tokenizer', () => rmSync(join(folder, 'tokenizer.json')), /no tokenizer\.json/],
    ['no chat template', () => put('tokenizer_config.json', '{}'), /no chat template/],
    ['no weights', () => rmSync(join(folder, 'model.safetensors')), /no weights/],
    ['weights that are cut', () => put('model.safetensors', new Uint8Array(4)), /no weights/],
    ['quantised weights', () => config({ quantization_config: { bits: 4 } }), /its weights are quantised/],
    ['capped attention', () => config({ attn_logit_softcapping: 50 }), /it caps its logits/],
    ['capped logits', () => config({ final_logit_softcapping: 30 }), /it caps its logits/],
    [
      'positions that follow the longest prompt',
      () => config({ rope_scaling: { rope_type: 'longrope' } }),
      /its positions depend on the longest prompt/,
    ],
    [
      'weights for more memory than is free',
      () => weights('more.safetensors', [100_000, 90_000]),
      /needs 74\.3 GB .* 64\.0 GB are free/,
    ],
  ])('refuses a model in one line that has %s', (_, spoil, words) => {
    spoil();
    expect(() => readBaseModel(folder, { freeBytes: roomy })).toThrow(words);
    expect(() => readBaseModel(folder, { freeBytes: roomy })).toThrow(
      /^The model in .*tiny-llama cannot be served: [^\n]+\.$/,
    );
  });
});
