// What KEDA asks is there to be asked: metrics that are exported, consumers that exist, an engine's own pool.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { durableOf } from '@backtalk/kit';
import { repositoryRoot } from '@backtalk/kit/testing';
import { describe, expect, it } from 'vitest';
import { z } from 'zod';
import { release, render, type RenderedObject, type Values } from './helm.js';

const trigger = z.looseObject({
  type: z.string(),
  metricType: z.string().optional(),
  metadata: z.record(z.string(), z.string()),
});
const scaler = z.looseObject({ spec: z.looseObject({ triggers: z.array(trigger) }) });

const keda = { kind: 'keda' };
const objects = render(
  {
    gateway: { autoscaling: keda },
    pools: Object.fromEntries(
      ['serving', 'rollout', 'judge', 'evaluation'].map((name) => [
        name,
        { shares: name === 'serving' ? undefined : '', replicas: null, autoscaling: keda },
      ]),
    ),
  },
  ['ci/gpu-cluster.yaml'],
);
const triggers = triggersOf(objects);

function triggersOf(all: readonly RenderedObject[]) {
  return new Map(
    all
      .filter(({ kind }) => kind === 'ScaledObject')
      .map((object) => [object.metadata.name.replace('loop-backtalk-', ''), scaler.parse(object).spec.triggers]),
  );
}

/** Of engines that are not ours; the built-in one exports the first two as well. */
const engineMetrics = [
  'vllm:num_requests_running',
  'vllm:num_requests_waiting',
  'sglang:num_running_reqs',
  'sglang:num_queue_reqs',
];

function exported(): string[] {
  const services = ['gateway', 'judge'].map((name) => join(repositoryRoot(), 'services', name, 'README.md'));
  const listed = services.flatMap((file) => readFileSync(file, 'utf8').match(/\bbacktalk_\w+/g) ?? []);
  return [...listed, ...engineMetrics];
}

it('every component that KEDA may scale is scaled', () => {
  expect([...triggers.keys()].sort()).toEqual(
    ['engine-evaluation', 'engine-judge', 'engine-rollout', 'engine-serving', 'gateway', 'judge'].sort(),
  );
});

/** Names in full: of alternatives in brackets, each is a name. */
function metricsIn(query: string): string[] {
  const patterns = [...query.matchAll(/\b(\w+:\w+)\(([^)]*)\)(\w+)/g)];
  const names = patterns.flatMap(([, before = '', choices = '', after = '']) =>
    choices.split('|').map((choice) => before + choice + after),
  );
  return [...names, ...(query.match(/\bbacktalk_\w+/g) ?? [])];
}

describe.each([...triggers])('%s', (component, [prometheus, ...others]) => {
  const query = prometheus?.metadata['query'] ?? '';

  it('a scaled workload asks for metrics that are exported, of this release alone', () => {
    const metrics = metricsIn(query);
    expect(metrics.length).toBeGreaterThan(0);
    expect(metrics.filter((name) => !exported().includes(name))).toEqual([]);
    expect(query).toContain(`namespace="llm",release="${release}"`);
  });

  it('a workload is scaled by what waits for itself', () => {
    const own = /app_kubernetes_io_component="([\w-]+)"/.exec(query)?.[1];
    expect(own).toBe(component.startsWith('engine-') ? component : undefined);
  });

  it('shares a sum out among replicas, and an age not', () => {
    expect(prometheus?.metricType).toBe(query.includes('age_seconds') ? 'Value' : 'AverageValue');
    for (const { type, metadata } of others) {
      expect(type).toBe('nats-jetstream');
      expect(metadata).toMatchObject({ stream: 'TURNS', consumer: durableOf('judge', 'turnContinued'), account: '$G' });
    }
  });
});

describe('one meaning for each number', () => {
  const thresholdOf = (component: string, values: Values) => {
    const [found] = triggersOf(render({ keda: { prometheusUrl: 'http://p:9090/' }, ...values })).get(component) ?? [];
    return found?.metadata;
  };
  const pool = { shares: '', autoscaling: { kind: 'keda', perReplica: 7, threshold: 9 } };

  it('engines of judges have requests to each replica, and judges seconds of waiting', () => {
    expect(thresholdOf('engine-judge', { pools: { judge: pool } })).toMatchObject({ threshold: '7' });
    expect(thresholdOf('judge', { judge: { autoscaling: { kind: 'keda', waitSeconds: 11 } } })).toMatchObject({
      threshold: '11',
    });
  });

  it('a query of one’s own has the threshold that goes with it', () => {
    const own = { ...pool, autoscaling: { ...pool.autoscaling, query: 'sum(mine)' } };
    expect(thresholdOf('engine-judge', { pools: { judge: own } })).toMatchObject({
      query: 'sum(mine)',
      threshold: '9',
    });
  });

  it('a query of one’s own among KEDA’s needs no label of the chart’s ServiceMonitor', () => {
    const queries = { 'engine-judge': 'sum(mine)', judge: 'max(age)' };
    const values = {
      judge: { autoscaling: { kind: 'keda' } },
      pools: { judge: pool },
      metrics: { serviceMonitor: { enabled: false } },
      keda: { prometheusUrl: 'http://p:9090', queries },
    };
    expect(thresholdOf('engine-judge', values)).toMatchObject({ query: 'sum(mine)', threshold: '9' });
    expect(thresholdOf('judge', values)).toMatchObject({ query: 'max(age)' });
  });

  it('an empty answer of Prometheus is an error and no zero', () => {
    expect(thresholdOf('engine-judge', { pools: { judge: pool } })).toMatchObject({
      ignoreNullValues: 'false',
      serverAddress: 'http://p:9090',
    });
  });
});

describe('KEDA’s own settings', () => {
  const objects = render({
    judge: { autoscaling: { kind: 'keda' } },
    nats: {
      enabled: false,
      external: { url: 'tls://n:4222', monitorUrl: 'https://n:8222/', existingSecret: 'b', account: 'APP' },
    },
    keda: {
      prometheusUrl: 'http://p:9090',
      trigger: { authenticationRef: { name: 'prometheus' }, metadata: { authModes: 'bearer' } },
      spec: { fallback: { failureThreshold: 3, replicas: 4 }, pollingInterval: 5 },
    },
  });
  const judge = objects.find(({ kind }) => kind === 'ScaledObject');

  it('KEDA’s own settings are merged into every ScaledObject and every Prometheus trigger', () => {
    expect(judge).toMatchObject({
      spec: { fallback: { failureThreshold: 3, replicas: 4 }, pollingInterval: 5, cooldownPeriod: 300 },
    });
    const [prometheus] = triggersOf(objects).get('judge') ?? [];
    expect(prometheus).toMatchObject({
      authenticationRef: { name: 'prometheus' },
      metadata: { authModes: 'bearer', serverAddress: 'http://p:9090' },
    });
  });

  it('KEDA asks a broker over TLS for the lag of its account', () => {
    expect(triggersOf(objects).get('judge')?.[1]?.metadata).toMatchObject({
      natsServerMonitoringEndpoint: 'n:8222',
      useHttps: 'true',
      account: 'APP',
    });
  });
});

it('each engine of judges has an address of its own, and none before it is ready', () => {
  const service = z.looseObject({
    spec: z.looseObject({ clusterIP: z.string(), publishNotReadyAddresses: z.boolean().default(false) }),
  });
  const found = objects.find(
    ({ kind, metadata }) => kind === 'Service' && metadata.name.endsWith('-engine-judge-pods'),
  );
  expect(service.parse(found).spec).toMatchObject({ clusterIP: 'None', publishNotReadyAddresses: false });
});
