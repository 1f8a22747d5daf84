// Where pods run, as whom, and how long they may take to come up: what a cluster's owner decides.
import { describe, expect, it } from 'vitest';
import { z } from 'zod';
import { namespace, notes, render, type RenderedObject, type Values } from './helm.js';
import { containerOf, podOf, podsOf } from './pods.js';

const affinity = { nodeAffinity: { preferredDuringSchedulingIgnoredDuringExecution: [] } };
const placed = ['gateway', 'collector', 'judge', 'trainer', 'publisher', 'commands', 'nats', 'valkey'] as const;

function longRunning(objects: readonly RenderedObject[]) {
  return podsOf(objects).filter(({ object }) => ['Deployment', 'StatefulSet'].includes(object.kind));
}

it('every workload takes an affinity, and pools take theirs from the defaults of all', () => {
  const own: Values = Object.fromEntries(placed.map((name) => [name, { affinity }]));
  const pods = longRunning(render({ ...own, poolDefaults: { affinity } }));
  expect(pods.map(({ component }) => component).sort()).toEqual([...placed, 'engine-serving', 'training'].sort());
  for (const { spec, name } of pods) expect(spec, name).toMatchObject({ affinity });
});

it('pods that cannot be spread wait, where the values say so', () => {
  for (const { spec } of longRunning(render({ topologySpread: 'DoNotSchedule' }))) {
    const unsatisfiable = spec.topologySpreadConstraints.map((constraint) => constraint['whenUnsatisfiable']);
    expect(unsatisfiable).toEqual(['DoNotSchedule', 'DoNotSchedule']);
  }
});

describe('users and accounts', () => {
  const user = z.looseObject({
    template: z.looseObject({ spec: z.looseObject({ securityContext: z.looseObject({}) }) }),
  });

  it('a cluster that chooses users is left the choice, and pods still may not be root', () => {
    const workloads = render({ runAs: null }).filter(({ kind }) => kind === 'Deployment' || kind === 'StatefulSet');
    expect(workloads.length).toBeGreaterThan(5);
    for (const { spec, metadata } of workloads) {
      const { securityContext } = user.parse(spec).template.spec;
      expect(securityContext, metadata.name).toMatchObject({ runAsNonRoot: true });
      for (const field of ['runAsUser', 'runAsGroup', 'fsGroup']) expect(securityContext).not.toHaveProperty(field);
    }
  });

  it.each([
    [{}, 'loop-backtalk', true],
    [{ name: 'llm' }, 'llm', true],
    [{ create: false }, 'default', false],
    [{ create: false, name: 'theirs' }, 'theirs', false],
  ])('serviceAccount %j: pods have %s', (serviceAccount, name, isMade) => {
    const objects = render({ serviceAccount });
    for (const { spec } of podsOf(objects)) expect(spec.serviceAccountName).toBe(name);
    const made = objects.filter(({ kind }) => kind === 'ServiceAccount').map(({ metadata }) => metadata.name);
    expect(made).toEqual(isMade ? [name] : []);
  });
});

describe('the time that engines take', () => {
  const progress = z.looseObject({ progressDeadlineSeconds: z.number() });

  it.each([
    ['ci/default.yaml', 900],
    ['ci/gpu-cluster.yaml', 900 + 1200],
  ])('a roll-out with %s is not given up while weights are fetched and read', (file, least) => {
    const engines = render({}, [file]).filter(({ metadata }) => metadata.name.includes('-engine-'));
    const deployments = engines.filter(({ kind }) => kind === 'Deployment');
    for (const { spec } of deployments) expect(progress.parse(spec).progressDeadlineSeconds).toBeGreaterThan(least);
  });
});

it.each([
  ['2Gi', String(Math.floor((2 * 1024 ** 3 * 9) / 10))],
  ['1500Mi', String((1500 * 1024 ** 2 * 9) / 10)],
  ['2G', undefined],
])('a broker that may take %s of memory collects before it is killed', (memory, expected) => {
  const broker = containerOf(podOf(render({ nats: { resources: { limits: { memory } } } }), 'nats'), 'nats');
  expect(broker.env.find(({ name }) => name === 'GOMEMLIMIT')?.value).toBe(expected);
});

it('what would surprise its owner stands in the words after an installation', () => {
  const pool = { shares: '', gpu: { count: 1 } };
  const asked = { pools: { judge: pool } };
  expect(notes(asked)).toContain('pools.judge scales by its CPU');
  expect(notes()).not.toContain('scales by its CPU');
  expect(notes()).toContain('a single gateway');
  expect(notes({ gateway: { autoscaling: { min: 2 } } })).not.toContain('a single gateway');
  expect(notes()).toContain(`kubectl -n ${namespace} exec deploy/loop-backtalk-commands -- backtalk status`);
});
