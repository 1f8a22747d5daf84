// Does the engine take adapters of the policy's rank? It is given one that does nothing, which is unloaded again. Without
// the base's dimensions nothing can be tried: the first version then shows it. The name is new each time, as every adapter's.
import { randomUUID } from 'node:crypto';
import { mkdir, rm, writeFile } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import type { CallOptions, EngineClient } from '@backtalk/dialects';
import { isBacktalkError } from '@backtalk/kit';
import type { BaseShape } from '../domain/adapter-shape.js';

const module = 'q_proj';
const bytesOfFloat = 4;

export class RankTrial {
  constructor(
    private readonly engine: EngineClient,
    /** 0: not tried. */
    private readonly rank: number,
    private readonly directory: string,
    private readonly shape: BaseShape | undefined,
  ) {}

  async isTaken(baseModel: string, options: CallOptions): Promise<boolean> {
    const { engine, rank, directory, shape } = this;
    const widths = shape?.widths[module];
    if (rank === 0 || widths === undefined) return true;
    const name = `backtalk-rank-trial-${randomUUID()}`;
    // Ends as what is half written does, so that a killed loader's is removed by the next.
    const folder = join(resolve(directory), `${name}.part`);
    try {
      await writeAdapter(folder, rank, widths, baseModel);
      await engine.loadAdapter(name, folder, options);
      await engine.unloadAdapter(name, options);
      return true;
    } catch (error) {
      if (isBacktalkError(error, 'adapter_refused')) return false;
      throw error;
    } finally {
      await rm(folder, { recursive: true, force: true });
    }
  }
}

async function writeAdapter(folder: string, rank: number, widths: readonly number[], baseModel: string): Promise<void> {
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
