import { spawnSync } from 'node:child_process';
import { chmodSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';

const setUp = new URL('../setup/vllm.mjs', import.meta.url).href;
let folder = '';

beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'backtalk-compiler-'));
});

afterAll(() => {
  rmSync(folder, { recursive: true });
});

/** Runs a call of the set-up where programs are looked for in `path` alone; prints what it throws. */
function run(call: string, path: string) {
  const script = `
    import { checkCompiler, setUpVllm } from ${JSON.stringify(setUp)};
    const folder = ${JSON.stringify(join(folder, 'venv'))};
    try { await ${call}; } catch (error) { console.log(error.name + ': ' + error.message); }`;
  const { stdout, stderr } = spawnSync(process.execPath, ['--input-type=module', '--eval', script], {
    env: { PATH: path },
    encoding: 'utf8',
  });
  return { stdout, stderr };
}

describe('vLLM’s set-up', () => {
  it('refuses a machine without g++ in one line that says what to install, before it installs anything', () => {
    expect(run('setUpVllm(folder)', join(folder, 'nothing'))).toEqual({
      stdout:
        'SetupRefusal: vLLM on CPU needs a C++ compiler, and g++ is not here: install it (on Debian and Ubuntu: apt-get install g++) and start again.\n',
      stderr: '',
    });
  });

  it.each([
    ['takes', 'one that answers', 0, ''],
    ['refuses', 'one that is broken', 1, 'SetupRefusal: '],
  ])('%s a compiler that is there: %s', (_what, name, status, told) => {
    const programs = join(folder, name.replaceAll(' ', '-'));
    mkdirSync(programs);
    writeFileSync(join(programs, 'g++'), `#!/bin/sh\nexit ${String(status)}\n`);
    chmodSync(join(programs, 'g++'), 0o755);
    const { stdout, stderr } = run('checkCompiler()', programs);
    expect({ stdout: stdout.slice(0, 14), stderr }).toEqual({ stdout: told, stderr: '' });
  });
});
