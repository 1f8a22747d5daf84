// Writes a small, valid LoRA adapter for a model's dimensions: the files that engines load, with values of our own.
// In: the model's folder, a seed and a scale. Out: a folder with adapter_config.json and adapter_model.safetensors.
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { randomFrom } from '../loop/random.js';

export interface SmallAdapter {
  readonly model: string;
  readonly baseName: string;
  readonly folder: string;
  readonly seed: number;
  readonly rank?: number;
  /** Size of the values; 0 leaves the model as it is. */
  readonly scale?: number;
}

interface ModelShape {
  readonly hidden_size: number;
  readonly num_hidden_layers: number;
}

const floatBytes = 4;

export function writeSmallAdapter({ model, baseName, folder, seed, rank = 4, scale = 0.05 }: SmallAdapter): string {
  const { hidden_size: width, num_hidden_layers: layers } = JSON.parse(
    readFileSync(join(model, 'config.json'), 'utf8'),
  ) as ModelShape;
  mkdirSync(folder, { recursive: true });
  const config = {
    peft_type: 'LORA',
    task_type: 'CAUSAL_LM',
    base_model_name_or_path: baseName,
    bias: 'none',
    r: rank,
    lora_alpha: 2 * rank,
    lora_dropout: 0,
    target_modules: ['q_proj'],
  };
  writeFileSync(join(folder, 'adapter_config.json'), JSON.stringify(config));
  writeFileSync(join(folder, 'adapter_model.safetensors'), safetensors(width, layers, rank, seed, scale));
  return folder;
}

/** Rows and columns of both factors of every layer's query projection. */
function safetensors(width: number, layers: number, rank: number, seed: number, scale: number): Uint8Array {
  const random = randomFrom(seed);
  const bytes = floatBytes * rank * width;
  const header: Record<string, unknown> = {};
  for (let layer = 0; layer < layers; layer += 1) {
    const name = `base_model.model.model.layers.${String(layer)}.self_attn.q_proj`;
    const at = 2 * layer * bytes;
    header[`${name}.lora_A.weight`] = { dtype: 'F32', shape: [rank, width], data_offsets: [at, at + bytes] };
    header[`${name}.lora_B.weight`] = {
      dtype: 'F32',
      shape: [width, rank],
      data_offsets: [at + bytes, at + 2 * bytes],
    };
  }
  const text = Buffer.from(JSON.stringify(header));
  const length = Buffer.alloc(8);
  length.writeBigUInt64LE(BigInt(text.byteLength));
  const values = Float32Array.from({ length: 2 * layers * rank * width }, () => scale * (2 * random.next() - 1));
  return Buffer.concat([length, text, Buffer.from(values.buffer)]);
}
