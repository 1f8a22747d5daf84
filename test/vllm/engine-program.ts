// How a real vLLM on CPU is run here: as `npm start -- --engine vllm` runs it, with the laptop's model and one thread.
// In: a port and how long a conversation may be. Out: command, arguments, environment; starts nothing.
import { join } from 'node:path';
import { vllmProgram as program } from '@backtalk/deploy';
import { root } from '../loop/machine.js';

export const baseName = 'smollm2-135m-wishes';
export const modelFolder = join(root, '.venv', 'models', baseName);

export const vllmCommand = program.vllmCommand(root);

export function vllmArguments(port: number | string, lengthMax: number): string[] {
  const policy = { rank: 8, policies: 1, toolParser: 'hermes' };
  return program.vllmArguments({ model: modelFolder, baseModel: baseName, port, lengthMax, ...policy });
}

export const vllmEnvironment: Readonly<Record<string, string>> = {
  ...program.vllmEnvironment(''),
  HF_HUB_OFFLINE: '1',
  OMP_NUM_THREADS: '1',
};
