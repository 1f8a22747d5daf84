import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { dcgmExporter, kubeStateMetrics, serveMetrics, type Exporter } from './cluster-exporters.js';
import { dashboardQueries, filled, needsCluster } from './dashboard-queries.js';
import { namespace, prometheusAbsent, seriesOf, startPrometheus, type Prometheus } from './prometheus.js';

const absent = prometheusAbsent();

describe.skipIf(absent !== undefined)(
  `panels on a cluster’s exporters, from what these document${absent === undefined ? '' : ` (skipped: ${absent})`}`,
  () => {
    const startedMs = Date.now();
    const exporters: Exporter[] = [];
    let prometheus: Prometheus;

    beforeAll(async () => {
      exporters.push(await serveMetrics(kubeStateMetrics), await serveMetrics(dcgmExporter));
      const [objects, gpus] = exporters.map(({ address }) => address);
      prometheus = await startPrometheus([
        { job: 'kube-state-metrics', address: objects ?? '', honorLabels: true },
        { job: 'dcgm-exporter', address: gpus ?? '' },
      ]);
    });

    afterAll(async () => {
      await prometheus?.stop();
      for (const exporter of exporters) await exporter.stop();
    });

    it.each(dashboardQueries().filter(needsCluster))('$dashboard: $place: $expr', async ({ expr }) => {
      const variables = {
        namespace,
        release: '.*',
        pool: '.*',
        policy: 'backtalk',
        __rate_interval: '20s',
        __interval: '2s',
        __range: '120s',
      };
      const query = filled(expr, variables);
      const found = await seriesOf(prometheus, { expr: query, fromMs: startedMs });
      // By what the panel's legend names, which an exporter's label must be.
      const [, by = ''] = /\bby \((\w+)\)/.exec(query) ?? [];
      expect(found.map(({ metric }) => metric[by])).not.toContain(undefined);
    });
  },
);
