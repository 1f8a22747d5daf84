// The engines that the contract holds for: the built-in one, and a real vLLM where somebody asks for it.
// In: nothing but this checkout. Out: a running engine on a port of its own.
import { spawnSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { answersOk, Child } from '@backtalk/deploy';
import { inheritedEnvironment } from '@backtalk/kit';
import { freePort, TemporaryDirectory } from '@backtalk/kit/testing';
import { root } from '../loop/machine.js';
import { vllmArguments, vllmCommand, vllmEnvironment } from '../vllm/engine-program.js';
import { contractErrors } from './errors.js';

export { baseName, modelFolder } from '../vllm/engine-program.js';
export const lengthMax = 1024;

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

const vllm: EngineProgram = {
  command: vllmCommand,
  args: (port) => vllmArguments(port, lengthMax),
  env: vllmEnvironment,
  readyWithinMs: 600_000,
};

async function start(program: EngineProgram): Promise<RunningEngine> {
  const directory = new TemporaryDirectory('engine');
  const port = await freePort();
  const url = `http://127.0.0.1:${String(port)}`;
  const spec = {
    name: 'engine',
    command: program.command,
    args: program.args(port),
    stopSignal: 'SIGTERM' as const,
    env: { ...inheritedEnvironment(), ...program.env },
    ready: () => answersOk(`${url}/health`),
    readyWithinMs: program.readyWithinMs,
  };
  const child = new Child(spec, directory.join('engine.log'), {
    started: () => undefined,
    died: () => undefined,
    ill: () => undefined,
    slow: () => undefined,
    back: () => undefined,
  });
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
  if (!existsSync(vllmCommand)) installVllm();
  return start(vllm);
}

function installVllm(): void {
  const command = [join(root, 'deploy', 'start.mjs'), 'setup', '--with', 'vllm', '--without-build'];
  const { status, stdout, stderr } = spawnSync(process.execPath, command, { encoding: 'utf8' });
  if (status !== 0) throw contractErrors.installFailed({ output: `${stdout}${stderr}`.slice(-2_000) });
}
