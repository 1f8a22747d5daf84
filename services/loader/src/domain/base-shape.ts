// Reads the dimensions of a base model from its `config.json`, for the families whose linear layers are named like Llama's.
//
// In: the parsed file. Out: the widths of each linear layer, or undefined when the family is another. Pure.
import type { BaseShape } from './adapter-shape.js';

export function baseShapeOf(config: Readonly<Record<string, unknown>>): BaseShape | undefined {
  const hidden = count(config['hidden_size']);
  const between = count(config['intermediate_size']);
  const layers = count(config['num_hidden_layers']);
  const heads = count(config['num_attention_heads']);
  if (hidden === undefined || between === undefined || layers === undefined || heads === undefined) return undefined;
  const headWidth = count(config['head_dim']) ?? hidden / heads;
  const queries = heads * headWidth;
  const keys = (count(config['num_key_value_heads']) ?? heads) * headWidth;
  return {
    layers,
    widths: {
      q_proj: [hidden, queries],
      k_proj: [hidden, keys],
      v_proj: [hidden, keys],
      o_proj: [queries, hidden],
      gate_proj: [hidden, between],
      up_proj: [hidden, between],
      down_proj: [between, hidden],
    },
  };
}

function count(value: unknown): number | undefined {
  return Number.isSafeInteger(value) && Number(value) > 0 ? Number(value) : undefined;
}
