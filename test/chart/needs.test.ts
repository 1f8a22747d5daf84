// What the words after an installation and README say a release needs is what its pods ask for, and a trial fits a small node.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { z } from 'zod';
import { notes } from './api-server.js';
import { chartFolder, render, type RenderedObject, type Values } from './helm.js';
import { podsOf, type Container } from './pods.js';

const units: Readonly<Record<string, number>> = { Ki: 1 / 1024, Mi: 1, Gi: 1024 };

function milliOf(text: string): number {
  return text.endsWith('m') ? Number(text.slice(0, -1)) : Number(text) * 1000;
}

function mebibytesOf(text: string): number {
  return Number(text.slice(0, -2)) * (units[text.slice(-2)] ?? NaN);
}

const replicas = z.looseObject({ spec: z.looseObject({ replicas: z.number() }) });
const scaler = z.looseObject({
  spec: z.looseObject({ minReplicas: z.number().optional(), minReplicaCount: z.number().optional() }),
});

function leastOf(objects: readonly RenderedObject[], object: RenderedObject): number {
  const found = objects.find(
    ({ kind, metadata }) =>
      ['HorizontalPodAutoscaler', 'ScaledObject'].includes(kind) && metadata.name === object.metadata.name,
  );
  if (found === undefined) return replicas.parse(object).spec.replicas;
  const { minReplicas, minReplicaCount } = scaler.parse(found).spec;
  return minReplicas ?? minReplicaCount ?? 0;
}

function asked(objects: readonly RenderedObject[]) {
  const staying = podsOf(objects).filter(({ object }) => ['Deployment', 'StatefulSet'].includes(object.kind));
  const all = staying.flatMap(({ object, spec }) =>
    spec.containers.map((one) => [leastOf(objects, object), one] as const),
  );
  const sum = (of: (one: Container) => number) => all.reduce((total, [count, one]) => total + count * of(one), 0);
  return {
    milli: sum(({ resources }) => milliOf(String(resources.requests['cpu']))),
    mebibytes: sum(({ resources }) => mebibytesOf(String(resources.requests['memory']))),
    gpus: sum(({ resources }) => Number(resources.limits['nvidia.com/gpu'] ?? 0)),
  };
}

const shared: Values = { shares: 'serving' };
const onTwo: Values = { replicas: 1, gpu: { count: 2 } };

const own: Values = {
  gateway: { autoscaling: { min: 3 } },
  pools: { evaluation: { shares: '', replicas: 2, resources: { requests: { cpu: '1.5', memory: '1Gi' } } } },
  commands: { enabled: false },
};

describe.each([
  ['as it is', {}],
  ['with other numbers', own],
])('a release %s', (_, values) => {
  it('says what its pods ask for', async () => {
    const { milli, mebibytes } = asked(render(values));
    expect(await notes(values)).toContain(`ask for ${String(milli)}m CPU and ${String(mebibytes)}Mi memory together;`);
  });
});

it('a release with GPUs says how many', async () => {
  const resources = { limits: { memory: '16Gi' } };
  const model = { name: 'm', hub: 'a/b', revision: '0'.repeat(40) };
  const pools = { serving: { engine: 'vllm', gpu: { count: 2 }, replicas: 2, resources } };
  expect(await notes({ model, judge: { backend: 'free' }, pools })).toContain(', and 4 GPUs;');
});

it.each([
  ['as the file says, with four engines that serve', {}, 7],
  ['with two that serve, and evaluation with them', { serving: { replicas: 2 }, evaluation: shared }, 4],
  ['with one that serves on two, and evaluation with it', { serving: onTwo, evaluation: shared }, 4],
  ['with one that serves, and evaluation with it', { serving: { replicas: 1 }, evaluation: shared }, 3],
])('a cluster with GPUs %s has as many as the words say', async (_, pools, gpus) => {
  const files = ['ci/gpu-cluster.yaml'];
  expect(asked(render({ pools }, files)).gpus).toBe(gpus);
  expect(await notes({ pools }, files)).toContain(`, and ${String(gpus)} GPUs;`);
});

describe('a trial', () => {
  const needs = asked(render());
  const engine = asked(render({ pools: { serving: { replicas: 2 } } }));

  /** What a node's own pods ask for (DNS, network, proxy) and what its kubelet keeps is left to them. */
  it('fits two cores and 4 GiB, with room for one engine more while it is updated', () => {
    expect(engine.milli).toBeGreaterThan(needs.milli);
    expect(engine.milli).toBeLessThanOrEqual(1_600);
    expect(engine.mebibytes).toBeLessThanOrEqual(3_328);
  });

  it('README says what a trial needs', () => {
    const words = `${String(needs.milli)}m CPU and ${String(needs.mebibytes)}Mi of memory`;
    expect(readFileSync(join(chartFolder, 'README.md'), 'utf8').replaceAll(/\s+/g, ' ')).toContain(words);
  });
});
