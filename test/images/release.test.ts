import { execFileSync } from 'node:child_process';
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { inheritedEnvironment, sha256Hex } from '@backtalk/kit';
import { pythonEnvironment, repositoryRoot, TemporaryDirectory } from '@backtalk/kit/testing';
import { afterAll, describe, expect, it } from 'vitest';
import { parse } from 'yaml';
import { z } from 'zod';

const helmFolder = join(pythonEnvironment(), 'bin');
const workflows = join(repositoryRoot(), '.github', 'workflows');
const readWorkflow = (name: string) => readFileSync(join(workflows, name), 'utf8');
const folder = new TemporaryDirectory('release');

afterAll(() => folder.remove());

describe('the chart of a release', () => {
  it('the released chart names the released images, by registry and digest', () => {
    const images = ['services', 'worker', 'worker-cuda'].map(
      (name) => `ghcr.io/acme/backtalk/${name}@sha256:${sha256Hex(Buffer.from(name))}`,
    );
    images.forEach((image, at) => writeFileSync(folder.join(`${String(at)}.txt`), `${image}\n`));
    const env = { PATH: `${helmFolder}:${inheritedEnvironment()['PATH'] ?? ''}` };
    const words = ['deploy/images/release-chart.sh', '1.2.3', folder.path, folder.path];
    const options = { cwd: repositoryRoot(), maxBuffer: 64e6, env, stdio: 'pipe' } as const;
    const helm = (...words: string[]) => execFileSync('helm', words, options).toString();
    const chart = execFileSync('bash', words, options).toString().trim();
    const rendered = helm('template', 'released', chart, '--set', 'secrets.existingSecret=given');
    const ours = new Set(rendered.match(/(?<=image: ["']?)\S*backtalk\/[^\s"']+/g));
    expect([...ours].sort()).toEqual(images.slice(0, 2));
    expect(helm('show', 'values', chart)).toContain(sha256Hex(Buffer.from('worker-cuda')));
    expect(helm('show', 'chart', chart)).toMatch(/appVersion: 1\.2\.3\n[^]*version: 1\.2\.3\n/);
  });
});

describe('the workflows', () => {
  it.each(readdirSync(workflows))('%s runs only actions of one commit, named by its hash', (name) => {
    const used = readWorkflow(name).match(/(?<=uses: ).+$/gm) ?? [];
    expect(used.length).toBeGreaterThan(0);
    expect(used.filter((action) => !/^[\w./-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+$/.test(action))).toEqual([]);
  });

  it('the tests run on every version of Node that is supported', () => {
    const matrix = z.object({ jobs: z.object({ test: z.object({ strategy: z.object({ matrix: nodes }) }) }) });
    const { node } = matrix.parse(parse(readWorkflow('ci.yml'))).jobs.test.strategy.matrix;
    expect(node.map((version) => Number.parseInt(version, 10))).toEqual([20, 22, 24]);
  });

  it('images are run where what they are made of changed', () => {
    for (const path of ['deploy/**', 'charts/**', 'package-lock.json', 'services/worker/requirements/**']) {
      expect(readWorkflow('images.yml')).toContain(`- ${path}\n`);
    }
  });
});

const nodes = z.object({ node: z.array(z.string()) });
