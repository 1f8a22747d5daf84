// Which base model a machine serves. In: the folder of a model in Hugging Face's layout. Out: what follows from it (name, size,
// context, recipe, memory), each with its reason; or one line that says why it cannot be served here. Reads headers, never weights.
import { execFile } from 'node:child_process';
import { closeSync, existsSync, openSync, readdirSync, readFileSync, readSync } from 'node:fs';
import { basename, join } from 'node:path';
import { promisify } from 'node:util';
import { inheritedEnvironment } from '@backtalk/kit';
import { z } from 'zod';
import { deployErrors } from './errors.js';

export interface BaseModel {
  /** As engines serve it; it stands in every adapter. */
  readonly name: string;
  readonly folder: string;
  readonly parameters: number;
  /** Tokens of prompt and answer together. */
  readonly contextTokens: number;
  /** Positions with keys and values that the engine keeps in memory, of all its answers together. */
  readonly kvTokens: number;
  /** Longest sample that a step has memory for. */
  readonly sampleTokens: number;
  /** Preset of the recipe. */
  readonly recipe: 'tiny' | 'small';
  /** What was chosen, and why. */
  readonly reasons: readonly (readonly [string, string])[];
}

/** Those whose linear layers and attention engine and training worker follow, each tested with a model made on the spot. */
const architectures: readonly string[] = [
  'LlamaForCausalLM',
  'MistralForCausalLM',
  'Qwen2ForCausalLM',
  'Qwen3ForCausalLM',
  'Gemma3ForCausalLM',
];
/** A prompt with its lessons, and an answer. */
const contextMin = 1_024;
/** On a CPU longer prompts take minutes before their first token. */
const contextMax = 32_768;
/** Enough for several answers at once, where the context is short. */
const kvTokensLeast = 16_384;
/** A step on a longer sample takes longer than people wait for one on a CPU. */
const sampleMax = 16_384;
const tinyParametersMax = 0.3e9;
/** The weights stand in engine and training worker, in float32. */
const bytesOfParameter = 8;
/** Servers, services, Python and torch twice. */
const otherBytes = 2e9;

const size = z.int().positive();
const configFile = z
  .object({
    architectures: z.array(z.string()).default([]),
    max_position_embeddings: size.default(1),
    hidden_size: size,
    intermediate_size: size,
    num_hidden_layers: size,
    num_attention_heads: size,
    num_key_value_heads: size.optional(),
    head_dim: size.nullish(),
    attn_logit_softcapping: z.number().nullish(),
    final_logit_softcapping: z.number().nullish(),
    quantization_config: z.unknown().optional(),
  })
  .readonly();
type Config = z.infer<typeof configFile>;

/** @param freeBytes memory that may be taken */
export function readBaseModel(folder: string, freeBytes: number): BaseModel {
  const config = servableConfig(folder);
  const parameters = parametersIn(folder);
  if (parameters === 0) throw refusal(folder, 'it has no weights in .safetensors files that can be read');
  const bounds = affordableBounds(folder, config, parameters, freeBytes);
  const recipe = parameters <= tinyParametersMax ? 'tiny' : 'small';
  const reasons = reasonsOf(config, parameters, bounds, recipe);
  return { name: basename(folder), folder, parameters, ...bounds, recipe, reasons };
}

/**
 * Refuses a model whose weights are not here yet.
 * @param parameters undefined where they are not known
 */
export function refuseBeforeWeights(folder: string, parameters: number | undefined, freeBytes: number): void {
  const config = servableConfig(folder);
  if (parameters !== undefined) affordableBounds(folder, config, parameters, freeBytes);
}

const refusal = (folder: string, why: string) => deployErrors.modelRefused({ folder, why });

function servableConfig(folder: string): Config {
  if (!/^[A-Za-z0-9][A-Za-z0-9._-]{0,95}$/.test(basename(folder)))
    throw refusal(folder, 'its folder has no name that can name a model (letters, digits, ".", "-" and "_")');
  const config = configFile.safeParse(jsonOf(join(folder, 'config.json')));
  if (!config.success) throw refusal(folder, 'it has no config.json that can be read');
  const why = unservable(config.data) ?? missingFile(folder);
  if (why !== undefined) throw refusal(folder, why);
  return config.data;
}

function affordableBounds(folder: string, config: Config, parameters: number, freeBytes: number): Bounds {
  const bounds = tokenBounds(config, parameters, freeBytes);
  if (bounds.contextTokens >= contextMin && bounds.sampleTokens >= contextMin) return bounds;
  const needed = gigabytes(leastBytes(config, parameters));
  throw refusal(folder, `it needs ${needed} of memory, and ${gigabytes(freeBytes)} are free`);
}

function unservable(config: Config): string | undefined {
  const [architecture = 'none'] = config.architectures;
  if (!architectures.includes(architecture))
    return `the built-in engine serves ${architectures.join(', ')}, and its architecture is ${architecture}`;
  if (config.quantization_config !== undefined && config.quantization_config !== null)
    return 'its weights are quantised, and plain ones are needed to train on';
  if ((config.attn_logit_softcapping ?? 0) > 0 || (config.final_logit_softcapping ?? 0) > 0)
    return 'it caps its logits, which training does not follow';
  const positions = config.max_position_embeddings;
  if (positions < contextMin)
    return `its context is ${String(positions)} tokens, and ${String(contextMin)} are the least`;
  return undefined;
}

function missingFile(folder: string): string | undefined {
  if (!existsSync(join(folder, 'tokenizer.json'))) return 'it has no tokenizer.json';
  if (!hasTemplate(folder)) return 'it has no chat template (chat_template.jinja, or one in tokenizer_config.json)';
  return undefined;
}

/** Keys and values of one position, in float32. */
function kvBytes(config: Config): number {
  const { num_attention_heads: heads, num_key_value_heads: keyHeads = heads, hidden_size: hidden } = config;
  const headSize = config.head_dim ?? Math.floor(hidden / heads);
  return 2 * config.num_hidden_layers * keyHeads * headSize * 4;
}

/**
 * What a step holds for each token of its longest sample, in float32: the input of every layer, and one layer at a time with
 * all that it computes and the gradients of that (services/worker/README.md has it measured).
 */
function sampleBytes({ hidden_size: hidden, intermediate_size: inner, num_hidden_layers: layers }: Config): number {
  return 4 * (layers * hidden + layerHiddens * hidden + layerInners * inner);
}
const layerHiddens = 16;
const layerInners = 7;

const fixedBytes = (parameters: number) => parameters * bytesOfParameter + otherBytes;

/** Half of the memory that weights leave goes to the engine's keys and values at most, the rest to a step. */
function tokenBounds(config: Config, parameters: number, freeBytes: number) {
  const left = Math.max(0, freeBytes - fixedBytes(parameters));
  const kvAffordable = Math.floor(left / 2 / kvBytes(config));
  const contextTokens = Math.min(config.max_position_embeddings, contextMax, kvAffordable);
  const kvTokens = Math.max(contextTokens, Math.min(kvTokensLeast, kvAffordable));
  const affordable = Math.floor((left - kvTokens * kvBytes(config)) / sampleBytes(config));
  return { contextTokens, kvTokens, sampleTokens: Math.min(contextTokens, sampleMax, affordable) };
}

/** With which the shortest context can be served and trained. */
const leastBytes = (config: Config, parameters: number) =>
  fixedBytes(parameters) + contextMin * Math.max(2 * kvBytes(config), kvBytes(config) + sampleBytes(config));

type Bounds = ReturnType<typeof tokenBounds>;

function reasonsOf(config: Config, parameters: number, bounds: Bounds, recipe: string): BaseModel['reasons'] {
  const { contextTokens, kvTokens, sampleTokens } = bounds;
  const positions = config.max_position_embeddings;
  const bound = contextTokens === contextMax ? 'more is slow on a CPU' : 'memory for keys and values';
  const longest =
    sampleTokens === contextTokens ? 'the context' : sampleTokens === sampleMax ? 'a step in minutes' : 'memory';
  const steps = gigabytes(sampleTokens * sampleBytes(config));
  return [
    [
      'context',
      `${String(contextTokens)} tokens (${contextTokens < positions ? `of ${String(positions)}: ${bound}` : "the model's own"})`,
    ],
    ['samples', `up to ${String(sampleTokens)} tokens (${longest})`],
    ['recipe', `${recipe} (${(parameters / 1e9).toFixed(2)}B parameters; tiny is for up to 0.3B)`],
    [
      'memory',
      `weights twice in float32 ${gigabytes(parameters * bytesOfParameter)}, keys and values ${gigabytes(kvTokens * kvBytes(config))}, a step ${steps}, all else ${gigabytes(otherBytes)}`,
    ],
  ];
}

const gigabytes = (bytes: number) => `${(bytes / 1e9).toFixed(1)} GB`;

/** Undefined for what is no JSON file. */
function jsonOf(path: string): unknown {
  try {
    return JSON.parse(readFileSync(path, 'utf8'));
  } catch {
    return undefined;
  }
}

const tokenizerFile = z.object({ chat_template: z.union([z.string().min(1), z.array(z.unknown()).min(1)]) });

function hasTemplate(folder: string): boolean {
  if (existsSync(join(folder, 'chat_template.jinja'))) return true;
  return tokenizerFile.safeParse(jsonOf(join(folder, 'tokenizer_config.json'))).success;
}

/** Of all tensors, by the headers of the files; 0 where one cannot be read. */
function parametersIn(folder: string): number {
  const files = readdirSync(folder).filter((name) => name.endsWith('.safetensors'));
  const counts = files.map((name) => parametersOf(join(folder, name)));
  return counts.includes(undefined) ? 0 : counts.reduce<number>((sum, count) => sum + (count ?? 0), 0);
}

const headerBytesMax = 100_000_000;
const header = z.record(z.string(), z.object({ shape: z.array(z.int().nonnegative()).optional() }));

function parametersOf(path: string): number | undefined {
  const file = openSync(path, 'r');
  try {
    const length = Buffer.alloc(8);
    if (readSync(file, length, 0, 8, 0) < 8) return undefined;
    const bytes = Number(length.readBigUInt64LE());
    if (bytes > headerBytesMax) return undefined;
    const text = Buffer.alloc(bytes);
    readSync(file, text, 0, bytes, 8);
    const tensors = Object.values(header.parse(JSON.parse(text.toString('utf8'))));
    return tensors.reduce((sum, { shape }) => sum + (shape?.reduce((size, width) => size * width, 1) ?? 0), 0);
  } catch {
    return undefined;
  } finally {
    closeSync(file);
  }
}

const run = promisify(execFile);
/** It loads a tokenizer, and on a busy machine the libraries for that take their time. */
const templateWithinMs = 120_000;
const failure = z.object({ stderr: z.string() });

/**
 * Which calls and thoughts are read out of a model's answers, as its chat template tells. Refuses in one line one that opens no
 * answer. Templates are programs: Python is asked, which runs them.
 */
export async function checkTemplate(root: string, folder: string): Promise<string> {
  const env = { ...inheritedEnvironment(), HF_HUB_OFFLINE: '1' };
  const args = ['-W', 'ignore', '-m', 'backtalk_worker.model.template', folder];
  try {
    const { stdout } = await run(join(root, '.venv', 'bin', 'python'), args, { timeout: templateWithinMs, env });
    return stdout.trim();
  } catch (error) {
    const said = failure.safeParse(error).data?.stderr.trim().split('\n').at(-1) ?? '';
    throw deployErrors.modelRefused({ folder, why: said === '' ? 'its chat template could not be tried' : said });
  }
}
