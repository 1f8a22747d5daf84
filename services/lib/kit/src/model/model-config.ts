// What a base model's config.json says of its shape, and what follows from that: parameters, widths, and why a model can be neither
// served nor trained here. Pure.
import { z } from 'zod';

/** Those whose linear layers and attention engine and training worker follow, each tested with a model made on the spot. */
const architectures: readonly string[] = [
  'LlamaForCausalLM',
  'MistralForCausalLM',
  'Qwen2ForCausalLM',
  'Qwen3ForCausalLM',
  'Gemma3ForCausalLM',
];

const size = z.int().positive();
export const modelConfig = z
  .object({
    architectures: z.array(z.string()).default([]),
    max_position_embeddings: size.default(1),
    hidden_size: size,
    intermediate_size: size,
    num_hidden_layers: size,
    num_attention_heads: size,
    num_key_value_heads: size.optional(),
    head_dim: size.nullish(),
    vocab_size: size.optional(),
    tie_word_embeddings: z.boolean().optional(),
    attention_bias: z.boolean().optional(),
    mlp_bias: z.boolean().optional(),
    attn_logit_softcapping: z.number().nullish(),
    final_logit_softcapping: z.number().nullish(),
    quantization_config: z.unknown().optional(),
    rope_scaling: z.unknown().optional(),
    rope_parameters: z.unknown().optional(),
  })
  .readonly();
export type ModelConfig = z.infer<typeof modelConfig>;

/** A prompt with its lessons, and an answer. */
export const contextMin = 1_024;

const headWidth = ({ head_dim: width, hidden_size: hidden, num_attention_heads: heads }: ModelConfig) =>
  width ?? Math.floor(hidden / heads);

/** Of all heads together: what queries, and what keys and values have. */
export function attentionWidths(config: ModelConfig): Readonly<Record<'queries' | 'keys', number>> {
  const { num_attention_heads: heads, num_key_value_heads: keyHeads = heads } = config;
  return { queries: heads * headWidth(config), keys: keyHeads * headWidth(config) };
}

/** Why a model can be neither served nor trained; undefined where it can. */
export function unservable(config: ModelConfig): string | undefined {
  const [architecture = 'none'] = config.architectures;
  if (!architectures.includes(architecture))
    return `the built-in engine serves ${architectures.join(', ')}, and its architecture is ${architecture}`;
  if (config.quantization_config !== undefined && config.quantization_config !== null)
    return 'its weights are quantised, and plain ones are needed to train on';
  if ((config.attn_logit_softcapping ?? 0) > 0 || (config.final_logit_softcapping ?? 0) > 0)
    return 'it caps its logits, which training does not follow';
  if (/"(?:longrope|dynamic)"/.test(JSON.stringify([config.rope_scaling, config.rope_parameters])))
    return 'its positions depend on the longest prompt that is computed beside another, which is not followed';
  const positions = config.max_position_embeddings;
  if (positions < contextMin)
    return `its context is ${String(positions)} tokens, and ${String(contextMin)} are the least`;
  return undefined;
}

/** Numbers of the whole model, by the shape alone; undefined where config.json states no vocabulary. */
export function parametersOf(config: ModelConfig): number | undefined {
  const { vocab_size: vocabulary, hidden_size: hidden, num_hidden_layers: layers } = config;
  if (vocabulary === undefined) return undefined;
  const [architecture] = config.architectures;
  const isGemma = architecture === 'Gemma3ForCausalLM';
  const { queries, keys } = attentionWidths(config);
  const queryBias = architecture === 'Qwen2ForCausalLM' || config.attention_bias === true;
  const biases =
    (queryBias ? queries + 2 * keys : 0) +
    (config.attention_bias === true ? hidden : 0) +
    (config.mlp_bias === true ? 2 * config.intermediate_size + hidden : 0);
  const headNorms = isGemma || architecture === 'Qwen3ForCausalLM' ? 2 * headWidth(config) : 0;
  const besides = biases + (isGemma ? 4 : 2) * hidden + headNorms;
  const tables = (config.tie_word_embeddings ?? isGemma) ? 1 : 2;
  return linearParameters(config) + layers * besides + hidden + tables * vocabulary * hidden;
}

/** Numbers of all linear layers but the head. */
export const linearParameters = (config: ModelConfig) =>
  config.num_hidden_layers * linearLayers(config).reduce((sum, [inputs, outputs]) => sum + inputs * outputs, 0);

/** Numbers of the largest of them. */
export const largestLinear = (config: ModelConfig) =>
  Math.max(...linearLayers(config).map(([inputs, outputs]) => inputs * outputs));

/** Numbers of an adapter on all linear layers but the head. */
export function adapterParameters(config: ModelConfig, rank: number): number {
  const widths = linearLayers(config).reduce((sum, [inputs, outputs]) => sum + inputs + outputs, 0);
  return config.num_hidden_layers * rank * widths;
}

/** Inputs and outputs of each linear layer of one layer of the decoder. */
function linearLayers(config: ModelConfig): readonly (readonly [number, number])[] {
  const { hidden_size: hidden, intermediate_size: inner } = config;
  const { queries, keys } = attentionWidths(config);
  return [
    [hidden, queries],
    [hidden, keys],
    [hidden, keys],
    [queries, hidden],
    [hidden, inner],
    [hidden, inner],
    [inner, hidden],
  ];
}
