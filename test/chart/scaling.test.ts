// What KEDA asks is there to be asked: metrics that are exported, consumers that exist, an engine's own pool.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { durableOf } from '@backtalk/kit';
import { repositoryRoot } from '@backtalk/kit/testing';
import { describe, expect, it } from 'vitest';
import { z } from 'zod';
import { render } from './helm.js';

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
const triggers = new Map(
  objects
    .filter(({ kind }) => kind === 'ScaledObject')
    .map((object) => [object.metadata.name.replace('loop-backtalk-', ''), scaler.parse(object).spec.triggers]),
);

/** Of engines that are not ours; the built-in one exports the first as well. */
const engineMetrics = ['vllm:num_requests_waiting', 'sglang:num_queue_reqs'];

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

describe.each([...triggers])('%s', (component, [prometheus, ...others]) => {
  const query = prometheus?.metadata['query'] ?? '';

  it('a scaled workload asks for metrics that are exported, of this release alone', () => {
    const metrics = query.match(/\b(backtalk|vllm|sglang)[:_]\w+/g) ?? [];
    expect(metrics.length).toBeGreaterThan(0);
    expect(metrics.filter((name) => !exported().includes(name))).toEqual([]);
    expect(query).toContain('namespace="llm"');
  });

  it('a workload is scaled by what waits for itself', () => {
    const own = /app_kubernetes_io_component="([\w-]+)"/.exec(query)?.[1];
    const isEngineOfPolicy = component.startsWith('engine-') && component !== 'engine-judge';
    expect(own).toBe(isEngineOfPolicy ? component : undefined);
  });

  it('shares a sum out among replicas, and an age not', () => {
    expect(prometheus?.metricType).toBe(query.includes('age_seconds') ? 'Value' : 'AverageValue');
    for (const { type, metadata } of others) {
      expect(type).toBe('nats-jetstream');
      expect(metadata).toMatchObject({ stream: 'TURNS', consumer: durableOf('judge', 'turnContinued'), account: '$G' });
    }
  });
});
