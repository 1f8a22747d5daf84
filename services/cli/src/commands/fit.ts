// `fit`: what serving, judging and training a model take of cards, and how it goes onto them. In: a config.json, by its folder, its
// path or its fields. Out: bytes by part, and each placement. It needs no running machine, and reads no weights.
import { existsSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import {
  fitOf,
  gigabytes,
  modelConfig,
  parametersOf,
  unservable,
  usableShare,
  type Fit,
  type Judge,
  type Parts,
  type Quantization,
} from '@backtalk/kit';
import { recipePresets } from '@backtalk/trainer/recipe';
import { cliErrors } from '../errors.js';
import type { Output } from '../output.js';

export interface FitFlags {
  readonly gpu: number;
  readonly context?: number;
  readonly conversations: number;
  readonly rank?: number;
  readonly sample?: number;
  readonly judge?: string;
  readonly quantization?: Quantization;
}

/** Longer prompts are served where they are asked for. */
const contextUsual = 32_768;
/** Adapters that the chart has engines compute with at once. */
const versionsUsual = 4;
const tinyParametersMax = 0.3e9;

export function fit(output: Output, model: string, flags: FitFlags): void {
  const { shape, parameters } = modelAt(model);
  const judge = flags.judge === undefined ? { shape, parameters } : modelAt(flags.judge);
  const preset = parameters <= tinyParametersMax ? 'tiny' : 'small';
  const { recipe } = recipePresets[preset];
  const positions = shape.max_position_embeddings;
  const contextTokens = flags.context ?? Math.min(positions, contextUsual);
  if (contextTokens > positions)
    throw cliErrors.badArgument({ name: '--context', value: String(contextTokens), wanted: `up to ${positions}` });
  const wanted = {
    cardBytes: flags.gpu,
    contextTokens,
    conversations: flags.conversations,
    rank: flags.rank ?? recipe.loraRank,
    sampleTokens: Math.min(contextTokens, flags.sample ?? recipe.sampleTokensMax),
    versions: versionsUsual,
    quantization: flags.quantization ?? 'none',
  };
  const found = fitOf(shape, parameters, judge, wanted);
  output.value({ parameters, recipe: preset, ...wanted, usableShare, ...found });
  const billions = `${(parameters / 1e9).toFixed(2)}B parameters`;
  const numbers = wanted.quantization === 'none' ? '' : ', linear layers in 4 bits';
  output.line(
    `${billions}${numbers}, recipe ${preset}, LoRA of rank ${wanted.rank}, cards of ${gigabytes(wanted.cardBytes)}.`,
  );
  output.line(
    `Context ${contextTokens} tokens, ${wanted.conversations} such conversations at once, samples up to ${wanted.sampleTokens} tokens.`,
  );
  output.line();
  output.table(['process', 'for', 'memory'], rowsOf(found));
  output.line();
  const placements = found.placements.map((one) => [
    one.name,
    String(one.cards),
    gigabytes(one.bytes),
    one.fits === 'shorter' ? 'with shorter samples' : one.fits,
    one.fits === 'no' ? '' : `${one.sampleTokens} tokens`,
  ]);
  output.table(['placement', 'cards', 'fullest card', 'fits', 'longest sample'], placements);
  output.line();
  output.line(
    `A placement fits within ${Math.round(usableShare * 100)} % of each card. One engine is split over up to eight cards, a step over none.`,
  );
  output.line(
    'What a step holds was measured on a CPU (npm run bench -- --only long-step); what engine and CUDA take is an allowance that no card has confirmed.',
  );
}

function rowsOf({ serving, judge, training }: Fit): string[][] {
  const of = (name: string, parts: Parts) =>
    Object.entries(parts).map(([what, bytes]) => [name, what, gigabytes(bytes)]);
  return [...of('serving', serving), ...of('judge', judge), ...of('training', training)];
}

function modelAt(model: string): Judge {
  const refusal = (why: string) => cliErrors.notReckoned({ model, why });
  const read = modelConfig.safeParse(valuesAt(model));
  if (!read.success) {
    const [issue] = read.error.issues;
    const where = issue?.path.join('.') ?? '';
    throw refusal(
      where === ''
        ? 'it is no folder with a config.json, no config.json, and no list of its fields (hidden_size=2560,…)'
        : `its config gives ${where} wrongly or not at all`,
    );
  }
  const parameters = parametersOf(read.data);
  const why = unservable(read.data) ?? (parameters === undefined ? 'its config gives no vocab_size' : undefined);
  if (why !== undefined || parameters === undefined) throw refusal(why ?? '');
  return { shape: read.data, parameters };
}

/** Undefined for what is none of the three. */
function valuesAt(model: string): unknown {
  if (!existsSync(model)) return model.includes('=') ? fieldsOf(model) : undefined;
  const file = statSync(model).isDirectory() ? join(model, 'config.json') : model;
  try {
    return JSON.parse(readFileSync(file, 'utf8'));
  } catch {
    return undefined;
  }
}

/** Qwen3's architecture and context, where the fields say nothing else. */
function fieldsOf(text: string): unknown {
  const fields = text.split(',').map((field): [string, unknown] => {
    const [name = '', value = ''] = field.split('=');
    const number = Number(value);
    return [
      name.trim(),
      value === 'true' || value === 'false' ? value === 'true' : Number.isNaN(number) ? value : number,
    ];
  });
  return { architectures: ['Qwen3ForCausalLM'], max_position_embeddings: 40_960, ...Object.fromEntries(fields) };
}
