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

  it('images install no list but by its hashes, and by name only the torch that a list pins', () => {
    const images = readdirSync(join(deploy, 'images')).filter((name) => name.endsWith('.Dockerfile'));
    const lines = images.flatMap((name) => readFileSync(join(deploy, 'images', name), 'utf8').split('\n'));
    const installing = lines.filter((line) => line.includes('pip install'));
    const isKnown = (line: string) =>
      line.includes('pip install --require-hashes --no-deps -r ') ||
      // Our own package, with nothing of others.
      line.endsWith('pip install --no-deps --no-build-isolation -e services/worker') ||
      line.includes(`"$(grep '^torch==' services/worker/requirements/runtime.txt)"`);
    expect(installing.length).toBeGreaterThan(2);
    expect(installing.filter((line) => !isKnown(line))).toEqual([]);
  });

  it('what the start installs by name has its version', () => {
    const scripts = readdirSync(join(deploy, 'setup')).filter((name) => name.endsWith('.mjs'));
    const text = scripts.map((name) => readFileSync(join(deploy, 'setup', name), 'utf8')).join('\n');
    const named = [...text.matchAll(/const (?:packages|torch) = (.+);/g)].flatMap(([, list = '']) =>
      list.match(/'[^']+'/g),
    );
    expect(named.length).toBeGreaterThan(2);
    expect(named.filter((name) => name !== null && !/^'[\w.-]+==[\w.]+'$/.test(name))).toEqual([]);
  });

  it('the images’ README says which CUDA and driver go with the torch that is pinned', () => {
    const torch = /^torch==(.+)$/m.exec(readFileSync(join(worker, 'runtime.txt'), 'utf8'))?.[1] ?? '';
    const text = readFileSync(join(deploy, 'images', 'README.md'), 'utf8').replaceAll('\n', ' ');
    expect(text).toContain(`worker-cuda\`, ${torch} as PyPI has it, asks for \`cuda-toolkit\` 13.0`);
    expect(text).toContain('branch 580 or later');
  });
});
