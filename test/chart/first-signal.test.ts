// A container's first process hears SIGTERM while it imports what takes long. Its default there is to do nothing, which is
// as if it ignored the signal; a module of the test stands for the one that takes long, and never ends.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { pythonEnvironment, TemporaryDirectory } from '@backtalk/kit/testing';
import { afterAll, expect, it } from 'vitest';
import { render } from './helm.js';
import { containerOf, podOf } from './pods.js';

const model = { name: 'm', hub: 'a/b', revision: '0'.repeat(40) };
const pool = { engine: 'sglang', gpu: { count: 1 }, resources: { limits: { memory: '16Gi' } } };
const objects = render({ model, judge: { backend: 'free' }, pools: { serving: pool } });

const folder = new TemporaryDirectory('first-signal');
afterAll(() => folder.remove());

/** Modules of these names whose import says so and waits for a signal. */
function madeModules(...names: readonly string[]): string {
  for (const name of names) {
    mkdirSync(folder.join(name), { recursive: true });
    const waits = 'import signal\nprint("importing", flush=True)\nwhile True:\n    signal.pause()\n';
    writeFileSync(join(folder.join(name), '__init__.py'), waits);
  }
  return folder.path;
}

it.each([
  ['fetch-model', 'huggingface_hub'],
  ['engine', 'sglang'],
])(
  '%s ends within 2 s of SIGTERM while %s is imported',
  async (name, module) => {
    const { command, args } = containerOf(podOf(objects, 'engine-serving'), name);
    const environment = { MODEL_HUB_ID: 'a/b', MODEL_REVISION: '', ENGINE_KEY: 'key', PYTHONPATH: madeModules(module) };
    const child = spawn('sh', ['-c', 'trap "" TERM; exec "$0" "$@"', ...command, ...args], {
      env: { PATH: `${join(pythonEnvironment(), 'bin')}:/usr/bin:/bin`, ...environment },
      stdio: ['ignore', 'pipe', 'inherit'],
    });
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
