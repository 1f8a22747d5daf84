// Decides whether an adapter's files fit the base model and their manifest. In: tensors, adapter configuration, the
// manifest's rank and alpha, and the base model's dimensions where they are known. Out: undefined when it fits, else why
// not. Pure. Without the base's dimensions it checks that all layers agree with each other; the engine then has the last
// word.
import type { TensorInfo } from './safetensors.js';

export interface BaseShape {
  readonly layers: number;
  /** Input and output width of each linear layer, by the last part of its name. */
  readonly widths: Readonly<Record<string, readonly [number, number]>>;
}

export interface ExpectedAdapter {
  readonly rank: number;
  readonly alpha: number;
  readonly base: BaseShape | undefined;
}

const tensorName = /^base_model\.model\.(.+)\.lora_(A|B)\.weight$/;
const layerNumber = /\.layers\.(\d+)\./;

interface Halves {
  a?: TensorInfo;
  b?: TensorInfo;
}

export function adapterMisfit(
  tensors: ReadonlyMap<string, TensorInfo>,
  config: Readonly<Record<string, unknown>>,
  expected: ExpectedAdapter,
): string | undefined {
  const { rank, alpha, base } = expected;
  const { target_modules: given, modules_to_save: saved } = config;
  const targets = Array.isArray(given) ? given.filter((target) => typeof target === 'string') : [];
  const savesNothing = saved === undefined || saved === null || (Array.isArray(saved) && saved.length === 0);
  // What both vLLM and SGLang load.
  const wanted: readonly (readonly [string, boolean])[] = [
    ['peft_type', config['peft_type'] === 'LORA'],
    ['task_type', config['task_type'] === 'CAUSAL_LM'],
    ['r', config['r'] === rank],
    ['lora_alpha', config['lora_alpha'] === alpha],
    ['bias', (config['bias'] ?? 'none') === 'none'],
    ['modules_to_save', savesNothing],
    ['use_dora', config['use_dora'] !== true],
    ['target_modules', targets.length > 0 && !targets.includes('lm_head')],
  ];
  const wrong = wanted.find(([, fits]) => !fits);
  if (wrong !== undefined) return `adapter_config.json: ${wrong[0]} is not what the manifest or an engine needs`;

  const modules = new Map<string, Halves>();
  for (const [name, tensor] of tensors) {
    const [, module = '', half] = tensorName.exec(name) ?? [];
    if (half === undefined) return `${name} is no LoRA tensor`;
    const halves = modules.get(module) ?? {};
    halves[half === 'A' ? 'a' : 'b'] = tensor;
    modules.set(module, halves);
  }
  if (modules.size === 0) return 'it holds no tensors';
  const widths = new Map(Object.entries(base?.widths ?? {}));
  for (const [module, { a, b }] of modules) {
    const kind = module.split('.').at(-1) ?? '';
    if (!targets.includes(kind)) return `${module} is not among the target modules`;
    if (base !== undefined && Number(layerNumber.exec(module)?.[1] ?? 0) >= base.layers)
      return `${module} is not in the base model`;
    if (a?.shape.length !== 2 || b?.shape.length !== 2) return `${module} lacks one half, or has not two dimensions`;
    if (a.shape[0] !== rank || b.shape[1] !== rank) return `${module} is not of rank ${rank}`;
    const [input = 0, output = 0] = [a.shape[1], b.shape[0]];
    const known = widths.get(kind);
    if (known !== undefined && (input !== known[0] || output !== known[1]))
      return `${module} is ${input} to ${output} wide, not ${known.join(' to ')}`;
    widths.set(kind, [input, output]);
  }
  return undefined;
}

/** Dimensions from a base's `config.json`, for the families whose linear layers are named like Llama's; undefined for others. */
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
