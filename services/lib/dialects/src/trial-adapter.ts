// Does an engine take an adapter, and see the folder that it is in? In: an engine and a folder that both sides write alike. Out:
// nothing where it loaded an adapter that changes nothing, which is unloaded again; else its refusal. The name is new each time.
import { randomUUID } from 'node:crypto';
import { mkdir, rm, writeFile } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { asBacktalkError, type BacktalkError } from '@backtalk/kit';
import type { CallOptions, EngineClient } from './engine-client.js';
import { isEngineError } from './errors.js';

export interface TrialAdapter {
  /** Where adapters of versions are put, too. */
  readonly directory: string;
  readonly rank: number;
  /** Input and output of the first layer's `o_proj`. */
  readonly widths: readonly number[];
  readonly baseModel: string;
  /** It was loaded, and could not be unloaded: the engine keeps it, which says nothing of others. */
  readonly onKept?: (name: string, error: BacktalkError) => void;
}

/** One alone: SGLang looks for key and value beside a query, and fails without them. */
const module = 'o_proj';
const bytesOfFloat = 4;

export async function tryAdapter(engine: EngineClient, trial: TrialAdapter, options: CallOptions): Promise<void> {
  const name = `backtalk-rank-trial-${randomUUID()}`;
  // Ends as what is half written does, so that a killed process's is removed by the next.
  const folder = join(resolve(trial.directory), `${name}.part`);
  try {
    await writeAdapter(folder, trial);
    await engine.loadAdapter(name, folder, options);
    await engine.unloadAdapter(name, options).catch((error: unknown) => {
      if (!isEngineError(error, 'adapter_not_loaded')) trial.onKept?.(name, asBacktalkError(error));
    });
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

async function writeAdapter(folder: string, { rank, widths, baseModel }: TrialAdapter): Promise<void> {
  const [input = 0, output = 0] = widths;
  const name = `base_model.model.model.layers.0.self_attn.${module}`;
  const down = { dtype: 'F32', shape: [rank, input], data_offsets: [0, rank * input * bytesOfFloat] };
  const end = rank * (input + output) * bytesOfFloat;
  const up = { dtype: 'F32', shape: [output, rank], data_offsets: [rank * input * bytesOfFloat, end] };
  const header = Buffer.from(JSON.stringify({ [`${name}.lora_A.weight`]: down, [`${name}.lora_B.weight`]: up }));
  const length = Buffer.alloc(8);
  length.writeBigUInt64LE(BigInt(header.byteLength));
  const config = {
    peft_type: 'LORA',
    task_type: 'CAUSAL_LM',
    r: rank,
    lora_alpha: rank,
    lora_dropout: 0,
    bias: 'none',
    target_modules: [module],
    modules_to_save: null,
    base_model_name_or_path: baseModel,
  };
  await mkdir(folder, { recursive: true });
  await writeFile(join(folder, 'adapter_model.safetensors'), Buffer.concat([length, header, Buffer.alloc(end)]));
  await writeFile(join(folder, 'adapter_config.json'), JSON.stringify(config));
}
