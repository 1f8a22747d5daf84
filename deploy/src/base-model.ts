// Which base model a machine serves. In: the folder of a model in Hugging Face's layout. Out: what follows from it (name, size,
// context, recipe, memory), each with its reason; or one line that says why it cannot be served here. Reads headers, never weights.
import { execFile } from 'node:child_process';
import { closeSync, existsSync, openSync, readdirSync, readFileSync, readSync } from 'node:fs';
import { basename, join } from 'node:path';
import { promisify } from 'node:util';
import {
  attentionWidths,
  inheritedEnvironment,
  memoryShort,
  modelConfig,
  parametersOf,
  reasonsOfBounds,
  tokenBounds,
  unservable,
  type Bounds,
  type ModelConfig,
  type Room,
} from '@backtalk/kit';
import { z } from 'zod';
import type { PlannedModel } from './box-plan.js';
import { deployErrors } from './errors.js';

export interface BaseModel extends Bounds {
  /** As engines serve it; it stands in every adapter. */
  readonly name: string;
  readonly folder: string;
  readonly parameters: number;
  /** Preset of the recipe. */
  readonly recipe: 'tiny' | 'small';
  /** What was chosen, and why. */
  readonly reasons: readonly (readonly [string, string])[];
}

const tinyParametersMax = 0.3e9;

export function readBaseModel(folder: string, room: Room): BaseModel {
  const config = servableConfig(folder);
  const parameters = parametersIn(folder);
  if (parameters === 0) throw refusal(folder, 'it has no weights in .safetensors files that can be read');
  refuseWithoutMemory(folder, config, parameters, room);
  const bounds = tokenBounds(config, parameters, room);
  const recipe = recipeFor(parameters);
  const { context, samples, memory } = reasonsOfBounds(config, parameters, bounds, room);
  const ofRecipe = `${recipe} (${(parameters / 1e9).toFixed(2)}B parameters; tiny is for up to 0.3B)`;
  const reasons = [
    ['context', context],
    ['samples', samples],
    ['recipe', ofRecipe],
    ['memory', memory],
  ] as const;
  return { name: basename(folder), folder, parameters, ...bounds, recipe, reasons };
}

/**
 * What a plan needs to know of a model.
 * @param complete whether all of it has to be there; otherwise its config.json is enough
 */
export function plannedModel(folder: string, complete: boolean): PlannedModel {
  const shape = servableConfig(folder, complete);
  const parameters = (existsSync(folder) ? parametersIn(folder) : 0) || (parametersOf(shape) ?? 0);
  if (parameters === 0) throw refusal(folder, 'neither its weights nor its config.json tell its size');
  return { name: basename(folder), folder, shape, parameters };
}

/** Preset of the recipe, by size. */
export const recipeFor = (parameters: number) => (parameters <= tinyParametersMax ? 'tiny' : 'small');

/**
 * Refuses a model whose weights are not here yet.
 * @param parameters undefined where they are not known
 */
export function refuseBeforeWeights(folder: string, parameters: number | undefined, room: Room): void {
  const config = servableConfig(folder);
  if (parameters !== undefined) refuseWithoutMemory(folder, config, parameters, room);
}

/** Input and output of the layer that adapters are tried on. */
export function trialWidths(folder: string): readonly [number, number] {
  const config = modelConfig.parse(jsonOf(join(folder, 'config.json')));
  return [attentionWidths(config).queries, config.hidden_size];
}

const refusal = (folder: string, why: string) => deployErrors.modelRefused({ folder, why });

function servableConfig(folder: string, complete = true): ModelConfig {
  if (!/^[A-Za-z0-9][A-Za-z0-9._-]{0,95}$/.test(basename(folder)))
    throw refusal(folder, 'its folder has no name that can name a model (letters, digits, ".", "-" and "_")');
  const config = modelConfig.safeParse(jsonOf(join(folder, 'config.json')));
  if (!config.success) throw refusal(folder, 'it has no config.json that can be read');
  const why = unservable(config.data) ?? (complete ? missingFile(folder) : undefined);
  if (why !== undefined) throw refusal(folder, why);
  return config.data;
}

function refuseWithoutMemory(folder: string, config: ModelConfig, parameters: number, room: Room): void {
  const why = memoryShort(config, parameters, room);
  if (why !== undefined) throw refusal(folder, why);
}

function missingFile(folder: string): string | undefined {
  if (!existsSync(join(folder, 'tokenizer.json'))) return 'it has no tokenizer.json';
  if (!hasTemplate(folder)) return 'it has no chat template (chat_template.jinja, or one in tokenizer_config.json)';
  return undefined;
}

/** Undefined for what is no JSON file. */
export function jsonOf(path: string): unknown {
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
  const counts = files.map((name) => numbersIn(join(folder, name)));
  return counts.includes(undefined) ? 0 : counts.reduce<number>((sum, count) => sum + (count ?? 0), 0);
}

const headerBytesMax = 100_000_000;
const header = z.record(z.string(), z.object({ shape: z.array(z.int().nonnegative()).optional() }));

function numbersIn(path: string): number | undefined {
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
