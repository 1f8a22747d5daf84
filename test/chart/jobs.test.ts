// Processes have the names by which dashboards and alerts look for them: what the chart's ServiceMonitor makes of its pods,
// against every `job` that a query asks for.
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { z } from 'zod';
import { chartFolder, release, render } from './helm.js';
import { podsOf, type Container, type Pod } from './pods.js';

const relabeling = z.strictObject({
  sourceLabels: z.array(z.string()),
  regex: z.string().default('.*'),
  targetLabel: z.string(),
  replacement: z.string().default('$1'),
});
const endpoint = z.looseObject({ port: z.string(), relabelings: z.array(relabeling) });
const monitor = z.looseObject({ spec: z.looseObject({ endpoints: z.array(endpoint) }) });

const ownPools = Object.fromEntries(['rollout', 'judge', 'evaluation'].map((name) => [name, { shares: '' }]));
const objects = render({ pools: ownPools });
const { endpoints } = monitor.parse(objects.find(({ kind }) => kind === 'ServiceMonitor')).spec;

/** As Prometheus relabels: whole matches only; a label that nothing sets keeps the Service's name. */
function jobOf(pod: Pod, container: Container, { relabelings }: z.infer<typeof endpoint>): string {
  const labels: Record<string, string> = {
    job: 'loop-backtalk-metrics',
    __meta_kubernetes_pod_container_name: container.name,
    __meta_kubernetes_pod_label_app_kubernetes_io_component: pod.labels['app.kubernetes.io/component'] ?? '',
  };
  for (const { sourceLabels, regex, targetLabel, replacement } of relabelings) {
    const source = sourceLabels.map((name) => labels[name] ?? '').join(';');
    const isMatch = new RegExp(`^(?:${regex})$`).test(source);
    if (isMatch) labels[targetLabel] = replacement === '$1' ? source : replacement;
  }
  return labels['job'] ?? '';
}

const jobs = podsOf(objects).flatMap((pod) =>
  pod.spec.containers.flatMap((container) =>
    endpoints
      .filter(({ port }) => container.ports.some(({ name }) => name === port))
      .map((asked) => jobOf(pod, container, asked)),
  ),
);

const queries = ['dashboards', 'alerts'].flatMap((folder) =>
  readdirSync(join(chartFolder, 'files', folder)).flatMap((file) => {
    const text = readFileSync(join(chartFolder, 'files', folder, file), 'utf8').replaceAll('\\"', '"');
    return [...text.matchAll(/\bjob(=~|=)"([^"$]+)"/g)].map(([, , wanted = '']) => ({ file, wanted }));
  }),
);

it('every process that has metrics is a job of its own part', () => {
  const engines = ['engine-serving', 'engine-rollout', 'engine-evaluation', 'engine-judge'];
  const services = ['gateway', 'collector', 'judge', 'trainer', 'publisher', 'training'];
  expect([...new Set(jobs)].sort()).toEqual([...services, ...engines, 'loader'].sort());
});

it('what one release measures has its name, so that two in one namespace are told apart', () => {
  for (const { relabelings } of endpoints) {
    expect(relabelings).toContainEqual(
      expect.objectContaining({
        sourceLabels: ['__meta_kubernetes_pod_label_app_kubernetes_io_instance'],
        targetLabel: 'release',
      }),
    );
  }
  for (const { labels } of podsOf(objects)) expect(labels['app.kubernetes.io/instance']).toBe(release);
});

it('dashboards ask for jobs', () => {
  expect(queries.length).toBeGreaterThanOrEqual(5);
});

describe.each(queries)('job "$wanted" of $file', ({ wanted }) => {
  const alternatives = /\((?<list>[^)]*)\)/.exec(wanted)?.groups?.['list']?.split('|') ?? [wanted.replaceAll('.*', '')];

  it.each(alternatives)('finds %s', (part) => {
    const pattern = new RegExp(`^(?:${wanted.replace(/\([^)]*\)/, part)})$`);
    expect(jobs.filter((job) => pattern.test(job))).not.toEqual([]);
  });
});
