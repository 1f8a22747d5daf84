// How a real vLLM on CPU is run: in a virtual environment of its own, in float32, one thread, with adapters by name.
// In: a port and how long a conversation may be. Out: command, arguments, environment; starts nothing.
import { join } from 'node:path';
import { root } from '../loop/machine.js';

export const baseName = 'smollm2-135m-wishes';
export const modelFolder = join(root, '.venv', 'models', baseName);

/** Inside the other one, so that whoever removes or ignores that, does the same with this. */
const vllmVenv = join(root, '.venv', 'engines', 'vllm-0.32');

export const vllmCommand = join(vllmVenv, 'bin', 'python');

export function vllmArguments(port: number | string, lengthMax: number): string[] {
  return [
    ...['-m', 'vllm.entrypoints.openai.api_server', '--model', modelFolder, '--served-model-name', baseName],
    ...['--host', '127.0.0.1', '--port', String(port), '--dtype', 'float32', '--max-model-len', String(lengthMax)],
    // Stable, previous and candidate, and one that is on its way out. Of the policy's rank and no higher: on CPU vLLM pads
    // every adapter to the highest one, and copies it for every token of a prompt.
    ...['--enable-lora', '--max-loras', '4', '--max-cpu-loras', '8', '--max-lora-rank', '8', '--enforce-eager'],
    // Without them vLLM also wraps the head, and on CPU scores asked for while others are answered then end the engine.
    ...['--lora-target-modules', 'q_proj', 'k_proj', 'v_proj', 'o_proj', 'gate_proj', 'up_proj', 'down_proj'],
    ...['--logprobs-mode', 'processed_logprobs', '--shutdown-timeout', '5'],
  ];
}

export const vllmEnvironment: Readonly<Record<string, string>> = {
  VLLM_ALLOW_RUNTIME_LORA_UPDATING: 'True',
  VLLM_CPU_KVCACHE_SPACE: '1',
  VLLM_NO_USAGE_STATS: '1',
  DO_NOT_TRACK: '1',
  HF_HUB_OFFLINE: '1',
  // One thread, which the system may move: vLLM would bind it to the first core, whoever else works there.
  OMP_NUM_THREADS: '1',
  VLLM_CPU_OMP_THREADS_BIND: 'nobind',
};
