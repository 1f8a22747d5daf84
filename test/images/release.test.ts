import { execFileSync, spawnSync } from 'node:child_process';
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
const released = {
  version: z
    .object({ version: z.string() })
    .parse(parse(readFileSync(join(repositoryRoot(), 'charts', 'backtalk', 'Chart.yaml'), 'utf8'))).version,
  env: {
    PATH: `${helmFolder}:${inheritedEnvironment()['PATH'] ?? ''}`,
    GITHUB_SERVER_URL: 'https://github.com',
    GITHUB_REPOSITORY: 'acme/backtalk',
    GITHUB_REPOSITORY_OWNER: 'acme',
  },
};

afterAll(() => folder.remove());

describe('the chart of a release', () => {
  it('the released chart names the released images, by registry and digest', () => {
    const images = ['services', 'worker', 'worker-cuda'].map(
      (name) => `ghcr.io/acme/backtalk/${name}@sha256:${sha256Hex(Buffer.from(name))}`,
    );
    images.forEach((image, at) => writeFileSync(folder.join(`${String(at)}.txt`), `${image}\n`));
    const { env, version } = released;
    const words = ['deploy/images/release-chart.sh', version, folder.path, folder.path];
    const options = { cwd: repositoryRoot(), maxBuffer: 64e6, env, stdio: 'pipe' } as const;
    const helm = (...words: string[]) => execFileSync('helm', words, options).toString();
    const chart = execFileSync('bash', words, options).toString().trim();
    const rendered = helm('template', 'released', chart, '--set', 'secrets.existingSecret=given');
    const ours = new Set(rendered.match(/(?<=image: ["']?)\S*backtalk\/[^\s"']+/g));
    expect([...ours].sort()).toEqual(images.slice(0, 2));
    const onCards = ['--set', 'pools.training.resources.claims[0].name=gpu', '--set', 'secrets.existingSecret=given'];
    expect(helm('template', 'released', chart, ...onCards)).toContain(sha256Hex(Buffer.from('worker-cuda')));
    // An upgrade that keeps its values takes the images of the new release.
    expect(helm('show', 'values', chart)).not.toContain('sha256:' + sha256Hex(Buffer.from('services')));
    const address = 'https://github.com/acme/backtalk';
    const described = { version, appVersion: version, home: address, sources: [address] };
    expect(parse(helm('show', 'chart', chart))).toMatchObject(described);
  });

  it.each([
    ['release-chart.sh', '1.2.3', folder.path, folder.path],
    ['release-inputs.sh', 'services', 'NODE_IMAGE'],
  ])('%s refuses a tag that is not the chart’s version, in one line', (script, ...words) => {
    const env = { ...released.env, GITHUB_REF_NAME: 'v1.2.3' };
    const run = spawnSync('bash', [join('deploy', 'images', script), ...words], { cwd: repositoryRoot(), env });
    expect(run.status).toBe(1);
    const { version } = released;
    const said = `The tag says 1.2.3, charts/backtalk/Chart.yaml ${version} and the newest heading of its CHANGELOG.md ${version}: `;
    expect(run.stderr.toString()).toMatch(/^[^\n]*\n$/);
    expect(run.stderr.toString()).toContain(said);
    expect(run.stdout.toString()).toBe('');
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

  it('every image of a release has an SBOM and its provenance, and images and chart are signed by their digests', () => {
    const { jobs } = releaseJobs.parse(parse(readWorkflow('release.yml')));
    const builds = jobs.images.steps.filter(({ uses }) => uses?.startsWith('docker/build-push-action@'));
    expect(builds.map((build) => build.with)).toMatchObject([{ sbom: true, provenance: 'mode=max' }]);
    expect(jobs.images.strategy.matrix.include.map(({ name }) => name)).toEqual(['services', 'worker', 'worker-cuda']);
    for (const { permissions, steps } of [jobs.images, jobs.chart]) {
      expect(permissions['id-token']).toBe('write');
      const at = (found: (step: Step) => boolean | undefined) => steps.findIndex(found);
      const installed = at(({ uses }) => uses?.startsWith('sigstore/cosign-installer@'));
      const signed = at(({ run }) => run?.includes('cosign sign --yes '));
      expect(installed).toBeGreaterThanOrEqual(0);
      expect(signed).toBeGreaterThan(installed);
    }
    const signatures = readWorkflow('release.yml').match(/(?<=cosign sign --yes ).+/g);
    expect(signatures).toEqual(['"$IMAGE"', expect.stringContaining('@$(sed -n')]);
    expect(readWorkflow('release.yml')).toMatch(/IMAGE: .*@\$\{\{ steps\.image\.outputs\.digest \}\}/);
  });

  it('images are run where what they are made of changed', () => {
    for (const path of ['deploy/**', 'charts/**', 'package-lock.json', 'services/worker/requirements/**']) {
      expect(readWorkflow('images.yml')).toContain(`- ${path}\n`);
    }
  });
});

const nodes = z.object({ node: z.array(z.string()) });

const step = z.object({
  uses: z.string().optional(),
  run: z.string().optional(),
  with: z.record(z.string(), z.unknown()).optional(),
});
type Step = z.infer<typeof step>;
const job = z.object({ permissions: z.record(z.string(), z.string()), steps: z.array(step) });
const included = z.object({ matrix: z.object({ include: z.array(z.object({ name: z.string() })) }) });
const releaseJobs = z.object({ jobs: z.object({ images: job.extend({ strategy: included }), chart: job }) });

describe('packages of npm', () => {
  it('no package of npm runs a script when it is installed, here or in an image', () => {
    const words = ['config', 'get', 'ignore-scripts'];
    const options = { cwd: repositoryRoot(), env: { PATH: inheritedEnvironment()['PATH'] ?? '' } };
    expect(
      execFileSync('npm', words, { ...options, stdio: 'pipe' })
        .toString()
        .trim(),
    ).toBe('true');
    const recipe = readFileSync(join(repositoryRoot(), 'deploy', 'images', 'services.Dockerfile'), 'utf8');
    const said = recipe.split('\n').findIndex((line) => /^ENV .*\bNPM_CONFIG_IGNORE_SCRIPTS=true\b/.test(line));
    const installs = recipe.split('\n').flatMap((line, at) => (line.includes('npm ci') ? [at] : []));
    expect(installs.length).toBeGreaterThan(0);
    // Each stage that installs begins with the one that says so.
    expect(recipe.match(/(?<=^FROM )\S+(?= AS (?:packages|build)$)/gm)).toEqual(['manifests', 'manifests']);
    expect(said).toBeGreaterThanOrEqual(0);
    expect(installs.filter((at) => at < said)).toEqual([]);
  });
});
