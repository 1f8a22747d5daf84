import { spawnSync } from 'node:child_process';
import { chmodSync, existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { TemporaryDirectory } from '@backtalk/kit/testing';
import { afterAll, beforeEach, describe, expect, it } from 'vitest';

const setUp = new URL('../setup/prometheus.mjs', import.meta.url).href;
const directory = new TemporaryDirectory('prometheus-set-up');
const installed = '.venv/tools/prometheus';
let root = '';
let round = 0;

beforeEach(() => {
  root = directory.join(`root-${String((round += 1))}`);
  mkdirSync(`${root}/programs`, { recursive: true });
});

afterAll(() => {
  directory.remove();
});

/** Stands for a program of the distribution. */
function program(name: string, script: string): void {
  const file = `${root}/programs/${name}`;
  writeFileSync(file, `#!/bin/sh\n${script}\n`);
  chmodSync(file, 0o755);
}

function run(): string {
  const script = `import { setUpPrometheus } from ${JSON.stringify(setUp)}; setUpPrometheus({ root: ${JSON.stringify(root)} });`;
  const options = { env: { PATH: `${root}/programs:/usr/bin:/bin` }, encoding: 'utf8' } as const;
  return spawnSync(process.execPath, ['--input-type=module', '--eval', script], options).stderr;
}

describe('the set-up of Prometheus', () => {
  it('fetches lists of its own where the machine has none', () => {
    // Only a download from lists that were fetched beside it succeeds.
    program(
      'apt-get',
      'case "$*" in download*) echo "E: Unable to locate package" >&2; exit 100;; *Dir::State=*update) touch lists;; *Dir::State=*download*) test -e lists && touch prometheus.deb;; esac',
    );
    program(
      'dpkg',
      'test "$2" = prometheus.deb && mkdir -p "$3/usr/bin" && touch "$3/usr/bin/prometheus" "$3/usr/bin/promtool"',
    );
    expect(run()).toBe('');
    expect(existsSync(`${root}/${installed}/promtool`)).toBe(true);
    expect(existsSync(`${root}/${installed}/absent.txt`)).toBe(false);
  });

  it('says why the package cannot be had, and leaves the reason for the tests that are skipped', () => {
    program('apt-get', 'echo "E: no network" >&2; exit 100');
    expect(run()).toContain('apt-get update: E: no network');
    expect(readFileSync(`${root}/${installed}/absent.txt`, 'utf8')).toBe('apt-get update: E: no network\n');
  });
});
