// Where pods run, as whom, and how long they may take to come up: what a cluster's owner decides.
import { describe, expect, it } from 'vitest';
import { z } from 'zod';
import { namespace, render, type RenderedObject, type Values } from './helm.js';
import { notes } from './api-server.js';
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

it('what one component merges into its pods is in no other’s, whatever all share', () => {
  const options = [{ name: 'ndots', value: '1' }];
  const postStart = (seconds: string) => ({ lifecycle: { postStart: { exec: { command: ['sleep', seconds] } } } });
  const all = { spec: { dnsConfig: { options } }, container: postStart('1') };
  const own = { spec: { dnsConfig: { nameservers: ['10.0.0.9'] } }, container: postStart('77') };
  for (const { component, spec } of longRunning(render({ pod: all, gateway: { pod: own } }))) {
    const text = JSON.stringify(spec);
    expect(text, component).toContain('ndots');
    expect([text.includes('10.0.0.9'), text.includes('"77"')], component).toEqual(
      component === 'gateway' ? [true, true] : [false, false],
    );
  }
});

it('pods that cannot be spread wait, where the values say so', () => {
  for (const { spec } of longRunning(render({ topologySpread: 'DoNotSchedule' }))) {
    const unsatisfiable = spec.topologySpreadConstraints.map((constraint) => constraint['whenUnsatisfiable']);
    // A machine room of one's own labels no zones, and a node without the label would be passed over.
    expect(unsatisfiable).toEqual(['DoNotSchedule', 'ScheduleAnyway']);
    // A tainted node is empty for ever, and the others may then have one pod each.
    for (const constraint of spec.topologySpreadConstraints) expect(constraint['nodeTaintsPolicy']).toBe('Honor');
  }
});

it.each([
  ['claimed', { claims: [{ name: 'gpu' }] }],
  ['a slice of one', { limits: { 'nvidia.com/mig-3g.40gb': 1 } }],
])('a training pod computes on the card that it was given, though it is %s', (_, resources) => {
  const training = containerOf(podOf(render({ pools: { training: { resources } } }), 'training'), 'training');
  expect(training.env).toContainEqual(expect.objectContaining({ name: 'BACKTALK_DEVICE', value: 'cuda' }));
  expect(training.image).toContain('worker-cuda');
});

it('a device that computes nothing leaves a training pod on the CPU', () => {
  const resources = { limits: { 'rdma/hca': 1 } };
  const training = containerOf(podOf(render({ pools: { training: { resources } } }), 'training'), 'training');
  expect(training.env).toContainEqual(expect.objectContaining({ name: 'BACKTALK_DEVICE', value: 'cpu' }));
});

it('an engine that must end before the next one starts is given that time besides', () => {
  const deadline = (surge: number) => {
    const engine = podOf(render({ gateway: { answerSeconds: 600 }, pools: { serving: { surge } } }), 'engine-serving');
    return z.looseObject({ spec: z.looseObject({ progressDeadlineSeconds: z.number() }) }).parse(engine.object).spec;
  };
  expect(deadline(0).progressDeadlineSeconds - deadline(1).progressDeadlineSeconds).toBe(645);
});

it('an installation whose keys are still to be made says so, and how', async () => {
  const keys = { gateway: { keys: { source: 'bucket' } } };
  expect(await notes(keys)).toContain('exec deploy/loop-backtalk-commands -- backtalk keys add');
  expect(await notes()).not.toContain('backtalk keys add');
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

const onlyOne: Values = { pools: { serving: { replicas: 1 } } };

function isValues(value: unknown): value is Values {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** As Helm merges values. */
function merged(values: Values, over: Values): Values {
  const names = new Set([...Object.keys(values), ...Object.keys(over)]);
  const both = (before: unknown, after: unknown) =>
    isValues(before) && isValues(after) ? merged(before, after) : (after ?? before);
  return Object.fromEntries([...names].map((name) => [name, both(values[name], over[name])]));
}

it('what would surprise its owner stands in the words after an installation', async () => {
  const resources = { limits: { memory: '16Gi' } };
  const model = { hub: 'a/b', revision: '0'.repeat(40) };
  const asked = { pools: { judge: { shares: '', engine: 'vllm', gpu: { count: 1 }, model, resources } } };
  expect(await notes(asked)).toContain('pools.judge scales by its CPU');
  expect(await notes()).not.toContain('scales by its CPU');
  expect(await notes()).toContain('a single gateway');
  expect(await notes({ gateway: { autoscaling: { min: 2 } } })).not.toContain('a single gateway');
  expect(await notes()).toContain(`kubectl -n ${namespace} exec deploy/loop-backtalk-commands -- backtalk status`);
});

it.each([
  [
    'training that may take as much memory as the smallest base needs',
    'pools.training may take 6Gi',
    { model: { hub: 'a/b', revision: '0'.repeat(40) }, judge: { backend: 'free' } },
    { pools: { training: { resources: { limits: { memory: '24Gi' } } } } },
  ],
  [
    'judges that KEDA scales without the broker’s lag',
    'judge.autoscaling cannot look at the broker’s lag',
    {
      judge: { autoscaling: { kind: 'keda' } },
      keda: { prometheusUrl: 'http://p:9090' },
      nats: { enabled: false, external: { url: 'nats://n:4222', existingSecret: 'broker' } },
    },
    { nats: { enabled: false, external: { monitorUrl: 'http://n:8222' } } },
  ],
  [
    'a release without an engine',
    'pools.serving.replicas is 0: there is no engine, and nobody is answered.',
    { pools: { serving: { replicas: 0 } } },
    onlyOne,
  ],
])('the words after an installation name %s, and are silent when it is mended', async (_, words, values, mended) => {
  const said = words.replaceAll('’', "'");
  expect(await notes(values)).toContain(said);
  expect(await notes(merged(values, mended))).not.toContain(said);
});

describe('what is merged into pods', () => {
  const ca = { volumes: [{ name: 'ca', configMap: { name: 'ca' } }] };
  const mounted = { name: 'ca', mountPath: '/etc/ca' };
  const secret = { name: 'TOKEN', valueFrom: { secretKeyRef: { name: 'own', key: 'token' } } };
  const objects = render(
    {
      pod: {
        labels: { team: 'agents' },
        annotations: { of: 'all' },
        spec: { ...ca, priorityClassName: 'low' },
        container: { env: [secret, { name: 'HTTPS_PROXY', value: 'http://proxy:3128' }], volumeMounts: [mounted] },
      },
      gateway: {
        pod: { spec: { priorityClassName: 'high' }, container: { envFrom: [{ secretRef: { name: 'own' } }] } },
      },
      poolDefaults: { pod: { spec: { runtimeClassName: 'nvidia', schedulerName: 'volcano' } } },
      streams: { pod: { annotations: { of: 'streams' } } },
      test: { pod: { labels: { team: 'tests' } } },
    },
    ['ci/one-gpu.yaml'],
  );

  it('a pod of all is in every pod, the Job’s and the test’s too, and in each of its containers', () => {
    const pods = podsOf(objects);
    expect(pods.map(({ component }) => component)).toEqual(expect.arrayContaining(['streams', 'test']));
    for (const { spec, labels, name } of pods) {
      expect(labels, name).toHaveProperty('team');
      expect(spec.volumes, name).toContainEqual(ca.volumes[0]);
      for (const { env, volumeMounts } of [...spec.initContainers, ...spec.containers]) {
        expect(env, name).toContainEqual(secret);
        expect(volumeMounts, name).toContainEqual(mounted);
      }
    }
  });

  it('models are fetched through the proxy of all', () => {
    const { env } = containerOf(podOf(objects, 'engine-serving'), 'fetch-model');
    expect(env).toContainEqual({ name: 'HTTPS_PROXY', value: 'http://proxy:3128' });
  });

  it('a component’s own pod goes over that of all', () => {
    expect(podOf(objects, 'gateway').spec).toMatchObject({ priorityClassName: 'high' });
    expect(podOf(objects, 'collector').spec).toMatchObject({ priorityClassName: 'low' });
    expect(podOf(objects, 'engine-serving').spec).toMatchObject({
      runtimeClassName: 'nvidia',
      schedulerName: 'volcano',
      priorityClassName: 'low',
    });
    expect(podOf(objects, 'streams').annotations).toEqual({ of: 'streams' });
    expect(podOf(objects, 'test').labels).toMatchObject({ team: 'tests' });
    expect(podOf(objects, 'gateway').spec.containers[0]).toHaveProperty('envFrom');
  });

  it('a variable is given once, and what the values say of it holds', () => {
    const env = { BACKTALK_NATS_URL: 'nats://mine:4222' };
    const container = { env: [{ name: 'BACKTALK_NATS_USER', value: 'mine' }] };
    const gateway = podOf(render({ gateway: { env, pod: { container } } }), 'gateway').spec.containers[0];
    const named = (wanted: string) => gateway?.env.filter(({ name }) => name === wanted).map(({ value }) => value);
    expect(named('BACKTALK_NATS_URL')).toEqual(['nats://mine:4222']);
    expect(named('BACKTALK_NATS_USER')).toEqual(['mine']);
  });

  it('an empty node selector of a pool takes that of all pools away', () => {
    const nodeSelector = { gpu: 'yes' };
    const pools = { training: { nodeSelector: {} } };
    const placed = render({ poolDefaults: { nodeSelector }, pools });
    expect(podOf(placed, 'engine-serving').spec).toMatchObject({ nodeSelector });
    expect(podOf(placed, 'training').spec).not.toHaveProperty('nodeSelector');
  });
});

it('the Job has another name whenever anything of its pod is another, labels too', () => {
  const nameWith = (values: Values) => podOf(render(values), 'streams').object.metadata.name;
  const others: Values[] = [{ labels: { team: 'x' } }, { podAnnotations: { a: 'b' } }, { logLevel: 'debug' }];
  const [labelled, annotated, same] = others.map(nameWith);
  expect(new Set([nameWith({}), labelled, annotated]).size).toBe(3);
  expect(same).toBe(nameWith({}));
});

it('training has the shared memory of its values, and leaves a lost node soon', () => {
  const { spec } = podOf(render({ pools: { training: { shm: '2Gi' } } }), 'training');
  expect(spec.volumes).toContainEqual({ name: 'shm', emptyDir: { medium: 'Memory', sizeLimit: '2Gi' } });
  expect(spec['tolerations']).toContainEqual(
    expect.objectContaining({ key: 'node.kubernetes.io/unreachable', tolerationSeconds: 20 }),
  );
});

describe('what a cluster brings along', () => {
  const hub = { name: 'HF_ENDPOINT', value: 'https://mirror.example' };
  const model = { name: 'qwen3-8b', hub: 'a/b', revision: '0'.repeat(40) };
  const judge = { backend: 'rules' };

  it('a mirror of the hub is named to every container, those that fetch models among them', () => {
    const objects = render({ pod: { container: { env: [hub] } }, model, judge });
    const all = podsOf(objects).flatMap(({ spec }) => [...spec.initContainers, ...spec.containers]);
    const fetching = all.filter(({ command, args }) => [...command, ...args].join(' ').includes('snapshot_download'));
    expect(fetching.length).toBeGreaterThanOrEqual(2);
    for (const { name, env } of all) expect(env, name).toContainEqual(hub);
  });

  it('a device that is claimed counts as one: the pod has the claim, and the engine alone uses it', () => {
    const claim = { name: 'gpu', resourceClaimTemplateName: 'h100' };
    const pool = {
      engine: 'vllm',
      gpu: { count: 0 },
      resources: { limits: { memory: '32Gi' }, claims: [{ name: 'gpu' }] },
    };
    const values = { model, judge, pools: { serving: { ...pool, pod: { spec: { resourceClaims: [claim] } } } } };
    const { spec } = podOf(render(values), 'engine-serving');
    expect(spec).toMatchObject({ resourceClaims: [claim] });
    const users = spec.containers.filter(({ resources }) => 'claims' in resources).map(({ name }) => name);
    expect(users).toEqual(['engine']);
  });
});
