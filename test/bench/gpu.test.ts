// `npm run bench:gpu` without a GPU: the command itself runs on a CPU and writes the page that it is given.
import { spawnSync } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { pythonEnvironment, repositoryRoot, TemporaryDirectory } from '@backtalk/kit/testing';
import { afterAll, expect, it } from 'vitest';

const directory = new TemporaryDirectory('bench-gpu');
const page = directory.join('gpu.md');
const own = readFileSync(join(repositoryRoot(), 'docs', 'gpu.md'), 'utf8');

afterAll(() => {
  directory.remove();
});

function benchGpu(...words: readonly string[]) {
  const python = join(pythonEnvironment(), 'bin', 'python');
  const args = ['-W', 'ignore', join(repositoryRoot(), 'test', 'bench', 'gpu.py'), ...words];
  return spawnSync(python, args, { encoding: 'utf8', timeout: 230_000 });
}

it('a tiny shape is measured on a CPU, and its figures stand in the page between the marks and nowhere else', () => {
  writeFileSync(page, own);
  const ran = benchGpu('--shape', 'tiny', '--tokens', '48,96', '--device', 'cpu', '--page', page);
  expect(ran.stderr).toBe('');
  const written = readFileSync(page, 'utf8');
  const [figures = ''] = /<!-- figures -->[^]*<!-- end of figures -->/.exec(written) ?? [];
  const row =
    /\n\| tiny \| 48 \| [\d.]+ \| \d+ \| {2}\| [\d.]+ GB \| [\d.]+ GB \| [\d.]+ \| [\d.]+ \| not installed \|\n\| tiny \| 96 \| /;
  expect(figures).toMatch(row);
  expect(figures).toContain('differs from the same step on the CPU by 0.0e+00 of its length');
  const around = (text: string) => text.split(/<!-- figures -->[^]*<!-- end of figures -->/);
  expect(around(written)).toEqual(around(own));
}, 240_000);

it.each([
  [['--shape', 'huge', '--device', 'cpu'], "--shape: there is no shape 'huge': tiny, wide, qwen3-4b, qwen3-8b\n"],
  [['--shape', 'tiny,layers=2', '--device', 'cpu'], /^--shape: 'layers=2' is none of hidden_size, .*\n$/],
  [['--tokens', '2k', '--device', 'cpu'], "--tokens '2k' is no list of whole numbers, such as 2000,10000\n"],
])(
  'bench:gpu refuses %j in one line',
  (words, line) => {
    const { status, stderr } = benchGpu(...words);
    if (typeof line === 'string') expect(stderr).toBe(line);
    else expect(stderr).toMatch(line);
    expect(status).toBe(2);
  },
  120_000,
);
