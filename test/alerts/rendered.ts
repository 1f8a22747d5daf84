// What the chart makes for Prometheus of one release. In: the rendered chart. Out: its alert rules, and a scrape of processes on
// this machine as the operator would set it up for the release's pods: the ServiceMonitor's own relabelings on the labels
// that Kubernetes would give.
import { z } from 'zod';
import { namespace, release, render, type Values } from '../chart/helm.js';
import { timesFaster, faster, type RuleGroup } from './faster.js';

const rule = z.looseObject({
  alert: z.string(),
  expr: z.string(),
  for: z.string().optional(),
  labels: z.record(z.string(), z.string()),
  annotations: z.record(z.string(), z.string()),
});
const rules = z.looseObject({
  spec: z.looseObject({ groups: z.array(z.looseObject({ name: z.string(), rules: z.array(rule) })) }),
});
const relabeling = z.strictObject({
  sourceLabels: z.array(z.string()),
  regex: z.string().optional(),
  targetLabel: z.string(),
  replacement: z.string().optional(),
});
const endpoint = z.looseObject({ port: z.string(), path: z.string(), relabelings: z.array(relabeling) });
const monitor = z.looseObject({ spec: z.looseObject({ endpoints: z.array(endpoint) }) });

export { namespace, release };

/** All that there are: judges that read words alone have no alert about their engines. */
const votesAreAsked: Values = { judge: { backend: 'free' } };

export function releaseRules(values: Values = votesAreAsked, files: readonly string[] = []): RuleGroup[] {
  return render(values, files)
    .filter(({ kind }) => kind === 'PrometheusRule')
    .flatMap((object) => rules.parse(object).spec.groups)
    .map(({ name, rules: own }) => ({
      name,
      rules: own.map(({ for: waits, ...rest }) => ({ ...rest, ...(waits !== undefined && { for: waits }) })),
    }));
}

export interface Scraped {
  readonly component: string;
  readonly container: string;
  readonly pod: string;
  /** Name of the container's port: the ServiceMonitor has an endpoint for each. */
  readonly port: 'health' | 'engine';
  /** `host:port` on this machine. */
  readonly address: string;
}

/** Every second: four of the chart's scrapes would be one, and two cores answer no more. */
const everySecond = '1s';
const lookbackSeconds = 300;

export function prometheusOf(targets: readonly Scraped[]) {
  const { endpoints } = monitor.parse(render().find(({ kind }) => kind === 'ServiceMonitor')).spec;
  return {
    config: {
      global: { scrape_interval: everySecond, scrape_timeout: everySecond, evaluation_interval: '500ms' },
      rule_files: ['rules.yml'],
      scrape_configs: endpoints.map(({ port, path, relabelings }) => ({
        job_name: `serviceMonitor/${namespace}/${release}/${port}`,
        metrics_path: path,
        static_configs: targets.filter((target) => target.port === port).map(asPod),
        relabel_configs: [...ofOperator, ...relabelings.map(asPrometheusHasIt)],
      })),
    },
    files: { 'rules.yml': { groups: faster(releaseRules()) } },
    flags: ['--query.lookback-delta', `${String(lookbackSeconds / timesFaster)}s`],
  };
}

function asPod({ component, container, pod, address }: Scraped) {
  return {
    targets: [address],
    labels: {
      __meta_kubernetes_namespace: namespace,
      __meta_kubernetes_pod_name: pod,
      __meta_kubernetes_pod_container_name: container,
      __meta_kubernetes_pod_label_app_kubernetes_io_component: component,
      __meta_kubernetes_pod_label_app_kubernetes_io_instance: release,
    },
  };
}

/** What the operator puts before a ServiceMonitor's relabelings, as far as rules see it. */
const ofOperator = ['namespace', 'pod_name', 'pod_container_name'].map((name) => ({
  source_labels: [`__meta_kubernetes_${name}`],
  target_label: name.replace('pod_container_name', 'container').replace('pod_name', 'pod'),
}));

function asPrometheusHasIt({ sourceLabels, targetLabel, regex, replacement }: z.infer<typeof relabeling>) {
  return {
    source_labels: sourceLabels,
    target_label: targetLabel,
    ...(regex !== undefined && { regex }),
    ...(replacement !== undefined && { replacement }),
  };
}
