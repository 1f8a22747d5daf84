// Runs the real Helm on the chart. In: values. Out: the objects it renders, or the words with which it refuses.
import { execFile, spawnSync } from 'node:child_process';
import { cpSync, readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { inheritedEnvironment } from '@backtalk/kit';
import { pythonEnvironment, repositoryRoot, TemporaryDirectory } from '@backtalk/kit/testing';
import { parse } from 'yaml';
import { z } from 'zod';

export const chartFolder = join(repositoryRoot(), 'charts', 'backtalk');
export const release = 'loop';
export const namespace = 'llm';

/** As far as tests look into objects; everything else of them is kept as it is. */
const renderedObject = z.looseObject({
  apiVersion: z.string(),
  kind: z.string(),
  metadata: z.looseObject({
    name: z.string(),
    namespace: z.string().optional(),
    labels: z.record(z.string(), z.string()).default({}),
    annotations: z.record(z.string(), z.string()).default({}),
  }),
});
export type RenderedObject = z.infer<typeof renderedObject>;

export type Values = Readonly<Record<string, unknown>>;

interface Run {
  readonly status: number | null;
  readonly out: string;
  readonly complaint: string;
}

const helmProgram = join(pythonEnvironment(), 'bin', 'helm');
/** It collects no garbage in the fifth of a second that it runs. */
const env = { ...inheritedEnvironment(), GOGC: 'off' };

function helm(args: readonly string[], values: Values = {}): Run {
  const run = spawnSync(helmProgram, [...args, '--values', '-'], {
    // As JSON: Helm reads YAML 1.1, in which a plain `n` or `1e3` is no text.
    input: JSON.stringify(values),
    encoding: 'utf8',
    env,
    maxBuffer: 64 * 1024 * 1024,
    timeout: 60_000,
  });
  return { status: run.status, out: run.stdout, complaint: run.stderr };
}

/** What Helm is told of the cluster, where there is none to ask. */
export interface Cluster {
  readonly apis: readonly string[];
  readonly version?: string;
}
const everyKind: Cluster = { apis: ['monitoring.coreos.com/v1', 'keda.sh/v1alpha1'] };
/** By what kind Helm sees that there is a cluster: secrets are generated there only. */
const anyCluster = ['--api-versions', 'v1/Secret'];

/** The objects as Helm makes them for a cluster that it can ask. The tests' own process answers, so it must not wait. */
export async function renderOn(kubeconfig: string, values: Values = {}): Promise<RenderedObject[]> {
  const asked = ['--dry-run=server', '--disable-openapi-validation', '--kubeconfig', kubeconfig];
  const args = [
    'template',
    release,
    chartFolder,
    '--namespace',
    namespace,
    ...asked,
    '--set-json',
    JSON.stringify(values),
  ];
  const options = { env, maxBuffer: 64 * 1024 * 1024, timeout: 60_000 };
  const { stdout } = await promisify(execFile)(helmProgram, args, options);
  return objectsIn(stdout);
}

function template(values: Values, files: readonly string[], cluster = everyKind): Run {
  const version = cluster.version === undefined ? [] : ['--kube-version', cluster.version];
  const apis = [...cluster.apis.flatMap((api) => ['--api-versions', api]), ...version];
  const named = files.flatMap((file) => ['--values', join(chartFolder, file)]);
  return helm(['template', release, chartFolder, '--namespace', namespace, ...anyCluster, ...apis, ...named], values);
}

const rendered = new Map<string, readonly RenderedObject[]>();

/** The objects of a release with these values on top of these files, as for a cluster that knows all kinds. */
export function render(values: Values = {}, files: readonly string[] = []): readonly RenderedObject[] {
  const asked = JSON.stringify([values, files]);
  const known = rendered.get(asked);
  if (known !== undefined) return known;
  const objects = renderAgain(values, files);
  rendered.set(asked, objects);
  return objects;
}

/** Another run of Helm, which makes other secrets. */
export function renderAgain(values: Values = {}, files: readonly string[] = [], cluster?: Cluster): RenderedObject[] {
  const { status, out, complaint } = template(values, files, cluster);
  if (status !== 0) throw new TypeError(`Helm refuses the values:\n${complaint}`);
  return objectsIn(out);
}

/** The objects of an upgrade with --reuse-values: Helm takes the values of the chart before in the place of this chart's. */
export function renderReusing(before: Values, values: Values = {}): RenderedObject[] {
  const folder = new TemporaryDirectory('reused');
  try {
    const chart = folder.join('backtalk');
    cpSync(chartFolder, chart, { recursive: true });
    writeFileSync(join(chart, 'values.yaml'), JSON.stringify(before));
    const { status, out, complaint } = helm(
      ['template', release, chart, '--namespace', namespace, ...anyCluster],
      values,
    );
    if (status !== 0) throw new TypeError(`Helm refuses the values:\n${complaint}`);
    return objectsIn(out);
  } finally {
    folder.remove();
  }
}

/** The objects of a chart that depends on this one under the condition `backtalk.enabled`, with these values for it. */
export function renderBelow(values: Values): RenderedObject[] {
  const folder = new TemporaryDirectory('umbrella');
  try {
    const condition = { name: 'backtalk', version: '*', repository: '', condition: 'backtalk.enabled' };
    const umbrella = { apiVersion: 'v2', name: 'umbrella', version: '1.0.0', dependencies: [condition] };
    cpSync(chartFolder, folder.join('charts', 'backtalk'), { recursive: true });
    writeFileSync(folder.join('Chart.yaml'), JSON.stringify(umbrella));
    const args = ['template', release, folder.path, '--namespace', namespace, ...anyCluster];
    const { status, out, complaint } = helm(args, { backtalk: values });
    if (status !== 0) throw new TypeError(`Helm refuses the values:\n${complaint}`);
    return objectsIn(out);
  } finally {
    folder.remove();
  }
}

/** The objects of a release of another name, in another namespace. */
export function renderAs(name: string, inNamespace: string, values: Values = {}): RenderedObject[] {
  const { status, out, complaint } = helm(
    ['template', name, chartFolder, '--namespace', inNamespace, ...anyCluster],
    values,
  );
  if (status !== 0) throw new TypeError(`Helm refuses the values:\n${complaint}`);
  return objectsIn(out);
}

/** Objects by the text that Helm rendered: most are the same whatever the values. */
const read = new Map<string, RenderedObject | undefined>();

function objectsIn(yaml: string): RenderedObject[] {
  const texts = yaml.split(/^---$/m);
  return texts.map((text) => objectIn(text)).filter((object) => object !== undefined);
}

function objectIn(text: string): RenderedObject | undefined {
  if (!read.has(text)) {
    const document: unknown = parse(text, { version: '1.1' });
    read.set(text, document === null ? undefined : renderedObject.parse(document));
  }
  return read.get(text);
}

/** What Helm complains of; empty where it renders. */
export function refusal(values: Values, files: readonly string[] = [], cluster?: Cluster): string {
  const { status, complaint } = template(values, files, cluster);
  return status === 0 ? '' : complaint;
}

/** The output of `helm lint --strict`, and whether it passed. */
export function lint(file: string): { passed: boolean; output: string } {
  const { status, out, complaint } = helm(['lint', '--strict', chartFolder, '--values', join(chartFolder, file)]);
  return { passed: status === 0, output: out + complaint };
}

/** The text that Helm renders where it sees no cluster at all, or its words of refusal. */
export function renderBlind(values: Values, ...more: readonly string[]): string {
  const { status, out, complaint } = helm(
    ['template', release, chartFolder, '--namespace', namespace, ...more],
    values,
  );
  return status === 0 ? out : complaint;
}

/** The words after an installation on this cluster. */
export async function notesOn(kubeconfig: string, values: Values, files: readonly string[]): Promise<string> {
  const asked = ['--dry-run=server', '--disable-openapi-validation', '--kubeconfig', kubeconfig, '--hide-secret'];
  const args = [
    'install',
    release,
    chartFolder,
    '--namespace',
    namespace,
    ...asked,
    ...files.flatMap((file) => ['--values', join(chartFolder, file)]),
    '--set-json',
    JSON.stringify(values),
  ];
  const { stdout } = await promisify(execFile)(helmProgram, args, {
    env,
    maxBuffer: 64 * 1024 * 1024,
    timeout: 60_000,
  });
  return stdout.split('NOTES:\n')[1] ?? stdout;
}

export const valuesFiles: readonly string[] = readdirSync(join(chartFolder, 'ci'))
  .filter((name) => name.endsWith('.yaml'))
  .map((name) => `ci/${name}`);
