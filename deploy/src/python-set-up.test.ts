import { spawnSync } from 'node:child_process';
import { chmodSync, mkdirSync, readFileSync, renameSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { TemporaryDirectory } from '@backtalk/kit/testing';
import { afterAll, beforeEach, describe, expect, it } from 'vitest';

const setUp = new URL('../setup/python.mjs', import.meta.url).href;
const directory = new TemporaryDirectory('python-set-up');
const python = directory.join('python');
const asked = directory.join('asked');
const build = (version: string, needs: readonly string[]) => ({ version, needs });
const cpuBuild = build('2.13.0', ['filelock']);
const cudaBuild = build('2.13.0', ['nvidia-cublas; platform_system == "Linux"']);
let root = '';
let round = 0;

/** Stands for Python: writes down what it is asked, and makes environments of itself. */
const stand = `#!/bin/sh
echo "$*" >> "$ASKED"
case "$*" in
  *'import pip'*) echo "$VERSION" ;;
  '-m venv '*) mkdir -p "$3/bin" && cp "$0" "$3/bin/python" ;;
  *importlib.metadata*) echo "$INSTALLED" ;;
  *--report*) while [ "$1" != --report ]; do shift; done; echo "$OFFERED" > "$2" ;;
esac
`;

beforeEach(() => {
  root = directory.join(`root-${String((round += 1))}`);
  mkdirSync(`${root}/services/worker/requirements`, { recursive: true });
  mkdirSync(`${root}/.venv/setup`, { recursive: true });
  writeFileSync(`${root}/services/worker/requirements/runtime.txt`, 'torch==2.13.0\n');
  writeFileSync(python, stand);
  chmodSync(python, 0o755);
});

afterAll(() => {
  directory.remove();
});

interface Found {
  readonly version?: string;
  readonly installed?: typeof cpuBuild;
}

/** What was made and installed, each as Python was asked for it. */
function installs({ version = '3.11', installed = cpuBuild }: Found = {}): string[] {
  const context = { root, logFolder: `${root}/.venv/setup`, logFile: `${root}/.venv/setup/setup.log` };
  const script = `import { setUpPython } from ${JSON.stringify(setUp)}; await setUpPython(${JSON.stringify(python)}, [], ${JSON.stringify(context)});`;
  const offered = { install: [{ metadata: { version: cpuBuild.version, requires_dist: cpuBuild.needs } }] };
  const env = {
    PATH: '/usr/bin:/bin',
    ASKED: asked,
    VERSION: version,
    INSTALLED: JSON.stringify([installed.version, installed.needs]),
    OFFERED: JSON.stringify(offered),
  };
  writeFileSync(asked, '');
  const { status, stderr } = spawnSync(process.execPath, ['--input-type=module', '--eval', script], {
    env,
    encoding: 'utf8',
  });
  expect(status, stderr).toBe(0);
  const lines = readFileSync(asked, 'utf8').split('\n');
  return lines.filter((line) => /^-m (?:venv|pip install)/.test(line) && !line.includes('--dry-run'));
}

const worker = () => `-e ${root}/services/worker`;

describe('the set-up of Python', () => {
  it('what is installed is not installed again', () => {
    const first = installs();
    expect(first[0]).toBe(`-m venv ${root}/.venv`);
    expect(first.at(-1)).toContain(worker());
    expect(installs()).toEqual([]);
  });

  it('an environment whose Python is gone is made anew, and all that stood in it', () => {
    const first = installs();
    rmSync(`${root}/.venv/bin/python`);
    symlinkSync(directory.join('gone'), `${root}/.venv/bin/python`);
    expect(installs()).toEqual(first);
    expect(readFileSync(`${root}/.venv/setup/setup.log`, 'utf8')).toContain('-m venv');
  });

  it('an environment that another version of Python finds itself in is filled for that one', () => {
    const [, ...packages] = installs();
    expect(installs({ version: '3.12' })).toEqual(packages);
  });

  it('a checkout that was moved gets the worker from where it is now', () => {
    installs();
    renameSync(root, `${root}-moved`);
    root = `${root}-moved`;
    const [again, ...more] = installs();
    expect(again).toContain(worker());
    expect(more).toEqual([]);
  });

  it('the CPU build of torch takes the place of a CUDA build of the same version, and of no other', () => {
    const torch = (found: Found) => installs(found).find((line) => line.endsWith('torch==2.13.0'));
    expect(torch({ installed: cudaBuild })).toContain('--force-reinstall');
    rmSync(`${root}/.venv/stamps/torch`);
    expect(torch({})).not.toContain('--force-reinstall');
  });
});
