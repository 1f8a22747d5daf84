// How the base model's numbers are held: whole, or its linear layers in 4 bits each. In: what --quantization says, or what the last
// start was told, and all else that a start chose. Out: that, or one line that says why it cannot be had. Starts nothing.
import { existsSync, readdirSync } from 'node:fs';
import { quantizations, type Quantization } from '@backtalk/kit';
import { lastQuantization } from './connection.js';
import type { DataFolder } from './data-folder.js';
import { isElsewhere, type EngineChoice } from './engine-choice.js';
import { isTrainedElsewhere } from './engine-process.js';
import { deployErrors } from './errors.js';

export function quantizationFlag(value: string | undefined): Quantization | undefined {
  const said = quantizations.find((known) => known === value);
  if (value !== undefined && said === undefined)
    throw deployErrors.badOption({ option: 'quantization', value, wanted: 'none or nf4' });
  return said;
}

/** The environment is that of the processes. */
export function chosenQuantization(
  flag: Quantization | undefined,
  data: DataFolder,
  environment: Readonly<Record<string, string>>,
): Quantization {
  const chosen = flag ?? lastQuantization(data);
  if (chosen === 'none') return chosen;
  if (isTrainedElsewhere(environment)) throw refusal('a training service holds the base itself');
  if (environment['BACKTALK_TRAINING_SHARDING'] === 'on')
    throw refusal('each training process holds all of such a base (BACKTALK_TRAINING_SHARDING is off then)');
  if (environment['BACKTALK_DTYPE'] === 'float64')
    throw refusal('it computes in float32 or bfloat16 (BACKTALK_DTYPE is one of them then)');
  return chosen;
}

/** What serves has to hold the base so, too; an address does not tell. */
export function refuseEngine(engine: EngineChoice, quantization: Quantization): void {
  if (quantization === 'none') return;
  if (engine === 'vllm')
    throw refusal("vLLM's CPU build serves no such base (--engine builtin does, and vLLM on cards: --profile gpu)");
  if (isElsewhere(engine) && engine.dialect === 'sglang')
    throw refusal('it is served by vLLM and by the built-in engine, and an SGLang answers at that address');
}

/** Versions are changes to what the base computes, and in 4 bits it computes something else. Where there are none, it may change. */
export function refuseOtherQuantization(data: DataFolder, quantization: Quantization): void {
  const found = lastQuantization(data);
  const hasVersions = existsSync(data.adapters) && readdirSync(data.adapters).length > 0;
  if (!hasVersions || !existsSync(data.connection) || found === quantization) return;
  throw deployErrors.otherQuantization({ folder: data.path, found, quantization });
}

const refusal = (why: string) => deployErrors.quantizationRefused({ why });
