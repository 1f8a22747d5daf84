// Every Python package that a start installs is known by the hashes of its files, but for torch.
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';

const root = fileURLToPath(new URL('../..', import.meta.url));
const worker = join(root, 'services', 'worker', 'requirements');
const deploy = join(root, 'deploy');

/** The packages of a file with their versions, and how many hashes each has. */
function packagesIn(file: string): Map<string, number> {
  const whole = readFileSync(file, 'utf8')
    .replaceAll(/^#.*\n/gm, '')
    .replaceAll('\\\n', '');
  const lines = whole.split('\n').filter((line) => line !== '');
  return new Map(lines.map((line) => [line.split(/[ ;]/)[0] ?? '', line.split('--hash=sha256:').length - 1]));
}

/** As an index compares names. */
const plain = (requirement: string) =>
  requirement
    .toLowerCase()
    .replaceAll(/[_.](?=.*==)/g, '-')
    .replace(/\[.*\]/, '');

describe('Python packages', () => {
  it.each([
    [worker, 'runtime.lock.txt'],
    [worker, 'development.lock.txt'],
    [worker, 'model.txt'],
    [worker, 'embeddings.txt'],
    [deploy, 'requirements.txt'],
    [deploy, 'requirements-helm.txt'],
    [deploy, 'requirements-s3.lock.txt'],
  ])('each has hashes in %s/%s', (folder, name) => {
    const packages = packagesIn(join(folder, name));
    expect(packages.size).toBeGreaterThan(0);
    expect([...packages].filter(([requirement, hashes]) => !requirement.includes('==') || hashes === 0)).toEqual([]);
  });

  it.each([
    [worker, 'runtime'],
    [worker, 'development'],
    [deploy, 'requirements-s3'],
  ])('the lock file beside %s/%s.txt has what that file asks for', (folder, name) => {
    const locked = new Set([...packagesIn(join(folder, `${name}.lock.txt`)).keys()].map(plain));
    const asked = [...packagesIn(join(folder, `${name}.txt`)).keys()].map(plain);
    expect(asked.filter((requirement) => !locked.has(requirement) && !requirement.startsWith('torch=='))).toEqual([]);
  });

  it('the start installs no list but by its hashes', () => {
    const scripts = readdirSync(join(deploy, 'setup')).filter((name) => name.endsWith('.mjs'));
    const lists = scripts.flatMap((name) => readFileSync(join(deploy, 'setup', name), 'utf8').split('\n'));
    const installing = lists.filter((line) => line.includes("'-r'"));
    expect(installing.length).toBeGreaterThan(0);
    expect(installing.filter((line) => !line.includes("'--require-hashes', '--no-deps'"))).toEqual([]);
  });
});
