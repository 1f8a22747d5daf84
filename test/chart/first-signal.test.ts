// A container's first process hears SIGTERM while it imports what takes long. Its default there is to do nothing, which is
// as if it ignored the signal; a module of the test stands for the one that takes long, and never ends. One that serves is told.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { freePort, pythonEnvironment, TemporaryDirectory } from '@backtalk/kit/testing';
import { afterAll, expect, it } from 'vitest';
import { render } from './helm.js';
import { containerOf, podOf } from './pods.js';

const model = { name: 'm', hub: 'a/b', revision: '0'.repeat(40) };

function podOfServing(engine: string) {
  const pool = { engine, gpu: { count: 1 }, resources: { limits: { memory: '16Gi' } } };
  return podOf(render({ model, judge: { backend: 'free' }, pools: { serving: pool } }), 'engine-serving');
}

const folder = new TemporaryDirectory('first-signal');
afterAll(() => folder.remove());

/** A package of this name, whose import does what is given. */
function madeModule(name: string, source: string): string {
  mkdirSync(folder.join(name), { recursive: true });
  writeFileSync(join(folder.join(name), '__init__.py'), source);
  return folder.path;
}

/** The container's process, as a first process is started: SIGTERM does nothing until it says otherwise. */
function start(engine: string, name: string, modules: string, port = 30_030) {
  const { command, args } = containerOf(podOfServing(engine), name);
  const line = [...command, ...args].map((word) => word.replaceAll('30030', String(port)));
  return spawn('sh', ['-c', 'trap "" TERM; exec "$0" "$@"', ...line], {
    env: {
      PATH: `${join(pythonEnvironment(), 'bin')}:/usr/bin:/bin`,
      MODEL_HUB_ID: 'a/b',
      MODEL_REVISION: '',
      ENGINE_KEY: 'key',
      PYTHONPATH: modules,
    },
    stdio: ['ignore', 'pipe', 'inherit'],
  });
}

it.each([
  ['fetch-model', 'huggingface_hub', 'sglang'],
  ['engine', 'sglang', 'sglang'],
  ['engine', 'vllm', 'vllm'],
])(
  '%s ends within 2 s of SIGTERM while %s is imported',
  async (name, module, engine) => {
    const waits = 'import signal\nprint("importing", flush=True)\nwhile True:\n    signal.pause()\n';
    const child = start(engine, name, madeModule(module, waits));
    try {
      const [said] = (await once(child.stdout, 'data')) as [Buffer];
      expect(said.toString()).toBe('importing\n');
      child.kill('SIGTERM');
      const ended = once(child, 'exit', { signal: AbortSignal.timeout(2_000) });
      expect(await ended).toEqual([128 + 15, null]);
    } finally {
      child.kill('SIGKILL');
    }
  },
  30_000,
);

it('an engine that listens gets the SIGTERM of its container and ends with its own status', async () => {
  const port = await freePort();
  const serves = [
    'import os, signal, socket, sys',
    // Not `print`: the signal may come before the one below has returned, and writing to a buffer twice at once is an error.
    String.raw`signal.signal(signal.SIGTERM, lambda *_: (os.write(1, b"drained\n"), sys.exit(7)))`,
    `server = socket.create_server(("127.0.0.1", ${String(port)}))`,
    'print("serving", flush=True)',
    'while True:\n    signal.pause()\n',
  ];
  const child = start('vllm', 'engine', madeModule('vllm', serves.join('\n')), port);
  try {
    let said = '';
    child.stdout.on('data', (data: Buffer) => (said += data.toString()));
    await once(child.stdout, 'data');
    child.kill('SIGTERM');
    expect(await once(child, 'close', { signal: AbortSignal.timeout(10_000) })).toEqual([7, null]);
    expect(said).toBe('serving\ndrained\n');
  } finally {
    child.kill('SIGKILL');
  }
}, 30_000);

it('an engine that a signal ends is seen so from outside its container', async () => {
  const dies = 'import os, signal\nos.kill(os.getpid(), signal.SIGKILL)\n';
  const child = start('vllm', 'engine', madeModule('vllm', dies));
  child.stdout.resume();
  expect(await once(child, 'close', { signal: AbortSignal.timeout(10_000) })).toEqual([128 + 9, null]);
}, 30_000);
