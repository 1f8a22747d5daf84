import { describe, expect, it } from 'vitest';
import { adapterMisfit } from './adapter-shape.js';
import { baseShapeOf } from './adapter-shape.js';
import { readSafetensors, type TensorInfo } from './safetensors.js';

const base = baseShapeOf({
  hidden_size: 8,
  intermediate_size: 12,
  num_hidden_layers: 2,
  num_attention_heads: 4,
  num_key_value_heads: 2,
});
const config = {
  peft_type: 'LORA',
  task_type: 'CAUSAL_LM',
  r: 2,
  lora_alpha: 4,
  bias: 'none',
  target_modules: ['q_proj', 'k_proj', 'down_proj'],
  modules_to_save: null,
};
const expected = { rank: 2, alpha: 4, base };

function module(name: string, input: number, output: number, rank = 2): [string, TensorInfo][] {
  const path = `base_model.model.model.layers.${name}`;
  return [
    [`${path}.lora_A.weight`, { dtype: 'F32', shape: [rank, input] }],
    [`${path}.lora_B.weight`, { dtype: 'F32', shape: [output, rank] }],
  ];
}

const good = new Map([
  ...module('0.self_attn.q_proj', 8, 8),
  ...module('0.self_attn.k_proj', 8, 4),
  ...module('1.mlp.down_proj', 12, 8),
]);

describe('adapterMisfit', () => {
  it('takes an adapter whose every tensor fits rank and base', () => {
    expect(adapterMisfit(good, config, expected)).toBeUndefined();
    expect(adapterMisfit(good, config, { ...expected, base: undefined })).toBeUndefined();
  });

  it.each<[string, Record<string, unknown>]>([
    ['peft_type', { peft_type: 'IA3' }],
    ['task_type', { task_type: 'SEQ_CLS' }],
    ['r', { r: 4 }],
    ['lora_alpha', { lora_alpha: 8 }],
    ['bias', { bias: 'all' }],
    ['modules_to_save', { modules_to_save: ['lm_head'] }],
    ['use_dora', { use_dora: true }],
    ['target_modules', { target_modules: ['q_proj', 'lm_head'] }],
    ['target_modules', { target_modules: [] }],
  ])('refuses a configuration with another %s', (name, change) => {
    expect(adapterMisfit(good, { ...config, ...change }, expected)).toContain(name);
  });

  it.each<[string, [string, TensorInfo][], RegExp]>([
    ['of another rank', module('0.self_attn.q_proj', 8, 8, 3), /rank 2/],
    ['of another width', module('0.self_attn.q_proj', 9, 8), /wide/],
    ['of a module that is not named', module('0.mlp.up_proj', 8, 12), /target modules/],
    ['of a layer that the base lacks', module('2.self_attn.q_proj', 8, 8), /not in the base/],
    ['with one half only', module('0.self_attn.q_proj', 8, 8).slice(0, 1), /lacks one half/],
    ['that is no LoRA', [['model.embed_tokens.weight', { dtype: 'F32', shape: [1] }]], /no LoRA/],
    ['without tensors', [], /no tensors/],
  ])('refuses tensors %s', (_, tensors, why) => {
    expect(adapterMisfit(new Map(tensors), config, expected)).toMatch(why);
  });

  it('refuses layers that do not agree with each other where the base is not known', () => {
    const uneven = new Map([...module('0.self_attn.q_proj', 8, 8), ...module('1.self_attn.q_proj', 16, 8)]);
    expect(adapterMisfit(uneven, config, { ...expected, base: undefined })).toMatch(/wide/);
  });
});

describe('baseShapeOf', () => {
  it('reads head widths where they are given, and gives up on unknown families', () => {
    expect(base?.widths['k_proj']).toEqual([8, 4]);
    expect(baseShapeOf({ n_embd: 768 })).toBeUndefined();
  });
});

describe('readSafetensors', () => {
  const file = (header: object, dataBytes: number, announced?: number) => {
    const text = Buffer.from(JSON.stringify(header));
    const length = Buffer.alloc(8);
    length.writeBigUInt64LE(BigInt(announced ?? text.length));
    return Buffer.concat([length, text, Buffer.alloc(dataBytes)]);
  };
  const header = { __metadata__: { format: 'pt' }, a: { dtype: 'F32', shape: [2, 2], data_offsets: [0, 16] } };

  it('lists the tensors of a whole file', () => {
    const result = readSafetensors(file(header, 16));
    expect(result.ok && [...result.tensors]).toEqual([['a', { dtype: 'F32', shape: [2, 2] }]]);
  });

  it.each([
    ['truncated data', file(header, 15)],
    ['data of no tensor', file(header, 17)],
    ['a header longer than the file', file(header, 16, 10_000)],
    ['a shape that does not match its bytes', file({ a: { dtype: 'F32', shape: [2, 3], data_offsets: [0, 16] } }, 16)],
    ['an unknown type', file({ a: { dtype: 'Q4', shape: [2, 2], data_offsets: [0, 16] } }, 16)],
    ['a few bytes', Buffer.from('abc')],
  ])('refuses %s', (_, bytes) => {
    expect(readSafetensors(bytes).ok).toBe(false);
  });
});
