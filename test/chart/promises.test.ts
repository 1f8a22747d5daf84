// What the chart's README and the comments of its values promise of any installation, one test each.
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { repositoryRoot } from '@backtalk/kit/testing';
import { parse } from 'yaml';
import { describe, expect, it } from 'vitest';
import { z } from 'zod';
import { chartFolder, refusal, render, renderAgain, valuesFiles, type RenderedObject, type Values } from './helm.js';
import { containerOf, containersOf, podOf, podsOf } from './pods.js';

function kindsOf(objects: readonly RenderedObject[]): Set<string> {
  return new Set(objects.map(({ kind }) => kind));
}

function isWorkload({ kind }: RenderedObject): boolean {
  return kind === 'Deployment' || kind === 'StatefulSet';
}

const judges: Values = { pools: { judge: { shares: '' } } };

describe('the cluster', () => {
  it('a cluster that has no operators is given none of their kinds', () => {
    const without = kindsOf(renderAgain({}, [], { apis: [] }));
    for (const kind of ['ServiceMonitor', 'PrometheusRule', 'ScaledObject']) expect(without).not.toContain(kind);
    for (const kind of ['ServiceMonitor', 'PrometheusRule']) expect(kindsOf(render())).toContain(kind);
  });

  it('a cluster that is not asked is given monitors and rules where the values force them, as they say', () => {
    const relabelings = [{ targetLabel: 'cluster', replacement: 'one' }];
    const serviceMonitor = { force: true, scrapeTimeout: '7s', relabelings, metricRelabelings: relabelings };
    const forced = renderAgain({ metrics: { serviceMonitor, alerts: { force: true } } }, [], { apis: [] });
    expect(kindsOf(forced)).toContain('PrometheusRule');
    const endpoint = z.looseObject({ relabelings: z.array(z.unknown()) });
    const monitor = z.looseObject({ spec: z.looseObject({ endpoints: z.array(endpoint) }) });
    const { endpoints } = monitor.parse(forced.find(({ kind }) => kind === 'ServiceMonitor')).spec;
    for (const one of endpoints) {
      expect(one).toMatchObject({ scrapeTimeout: '7s', metricRelabelings: relabelings });
      expect(one.relabelings).toContainEqual(relabelings[0]);
    }
  });

  it('a cluster that is older than 1.29 is refused', () => {
    expect(refusal({}, [], { apis: [], version: '1.28.15' })).toContain('requires kubeVersion: >=1.29');
    expect(refusal({}, [], { apis: [], version: '1.29.0' })).toBe('');
    expect(refusal({}, [], { apis: [], version: 'v1.33.1-gke.100' })).toBe('');
  });
});

it('the chart has a version of its own, which CHANGELOG.md begins with, and the application that of the repository', () => {
  const text = readFileSync(join(chartFolder, 'Chart.yaml'), 'utf8');
  const chart = z.looseObject({ version: z.string(), appVersion: z.string() }).parse(parse(text));
  const repository: unknown = JSON.parse(readFileSync(join(repositoryRoot(), 'package.json'), 'utf8'));
  const { version } = z.looseObject({ version: z.string() }).parse(repository);
  expect(chart.appVersion).toBe(version);
  const [, newest = ''] = /^## (\S+)/m.exec(readFileSync(join(chartFolder, 'CHANGELOG.md'), 'utf8')) ?? [];
  expect(chart.version).toBe(newest);
  expect(chart.version).toMatch(/^(0|[1-9]\d*)\.(0|[1-9]\d*)\.(0|[1-9]\d*)(-[\dA-Za-z.-]+)?$/);
});

describe('images', () => {
  const digest = `sha256:${'0'.repeat(64)}`;
  const names = ['services', 'worker', 'workerCuda', 'vllm', 'sglang', 'nats', 'valkey'];
  const imagesIn = (objects: readonly RenderedObject[]) =>
    podsOf(objects).flatMap((pod) => containersOf(pod).map(({ image }) => image));

  it('images are taken by digest, whatever their tags say, from the registry of all', () => {
    const images = {
      registry: 'r.example.com',
      ...Object.fromEntries(names.map((name) => [name, { digest, tag: 'a' }])),
    };
    for (const values of [{ images }, { images, ...judges }]) {
      for (const image of imagesIn(render(values))) expect(image).toMatch(/^r\.example\.com\/[a-z/-]+@sha256:0{64}$/);
    }
    const engines = podsOf(render({ images }, ['ci/gpu-cluster.yaml']));
    for (const image of engines.flatMap((pod) => containersOf(pod).map((one) => one.image))) {
      expect(image).toMatch(/@sha256:0{64}$/);
    }
  });

  it('images without an owner are looked for where mirrors of Docker’s hub have them', () => {
    const mirrored = imagesIn(render({ images: { registry: 'r:5000/mirror' } }));
    expect(mirrored.filter((image) => image.includes('/nats'))).toEqual([
      expect.stringMatching(/^r:5000\/mirror\/library\/nats:/),
    ]);
    expect(mirrored.filter((image) => image.includes('valkey/'))).toEqual([
      expect.stringMatching(/^r:5000\/mirror\/valkey\/valkey:/),
    ]);
  });

  it('images of a registry of their own are not looked for in that of all', () => {
    const images = { registry: 'r.example.com', nats: { registry: 'n.example.com', tag: '1' } };
    expect(imagesIn(render({ images }))).toContain('n.example.com/nats:1');
  });

  it('images without tag and digest are those of the chart’s version', () => {
    const services = imagesIn(render()).filter((image) => image.includes('backtalk/'));
    for (const image of services) expect(image).toMatch(/^backtalk\/(services|worker):\d+\.\d+\.\d+/);
  });
});

describe('volumes', () => {
  const claim = z.looseObject({
    metadata: z.looseObject({ name: z.string() }),
    spec: z.looseObject({ storageClassName: z.string().optional() }),
  });
  const stateful = z.looseObject({
    spec: z.looseObject({
      volumeClaimTemplates: z.array(claim),
      persistentVolumeClaimRetentionPolicy: z.looseObject({ whenDeleted: z.string(), whenScaled: z.string() }),
    }),
  });
  const withClaims = (values: Values) =>
    podsOf(render(values)).flatMap(({ object, component }) => {
      const parsed = stateful.safeParse(object);
      return parsed.success ? [{ component, ...parsed.data.spec }] : [];
    });
  const classes = (values: Values) =>
    Object.fromEntries(
      withClaims(values).flatMap(({ component, volumeClaimTemplates }) =>
        volumeClaimTemplates.map(({ spec }) => [component, spec.storageClassName] as const),
      ),
    );

  it('volumes have the class of all, or their own', () => {
    const storage = { class: 'of-all' };
    const all = { gateway: 'of-all', nats: 'of-all', training: 'of-all', valkey: 'of-all' };
    expect(classes({ storage })).toEqual(all);
    const own = { storageClass: 'own' };
    const values = { gateway: { spool: own }, nats: own, valkey: own, pools: { training: { cache: own } } };
    expect(classes({ storage, ...values })).toEqual({ gateway: 'own', nats: 'own', training: 'own', valkey: 'own' });
    expect(classes({})).toEqual({ gateway: undefined, nats: undefined, training: undefined, valkey: undefined });
  });

  it.each([
    [true, 'Retain'],
    [false, 'Delete'],
  ])('volumes stay when the release goes: %s, and always when replicas go', (keep, whenDeleted) => {
    for (const { component, persistentVolumeClaimRetentionPolicy } of withClaims({ storage: { keep } })) {
      expect(persistentVolumeClaimRetentionPolicy, component).toEqual({ whenDeleted, whenScaled: 'Retain' });
    }
  });

  it('volumes outlive the release, and so does the Secret that what stands in them is keyed by', () => {
    const secret = render().find(({ kind }) => kind === 'Secret');
    expect(secret?.metadata.annotations).toMatchObject({ 'helm.sh/resource-policy': 'keep' });
  });
});

describe('pods start again', () => {
  // Commands alone read a client's key at their start, too.
  const sums = (objects: readonly RenderedObject[], name: string) =>
    podsOf(objects)
      .filter(({ object, component }) => isWorkload(object) && component !== 'commands')
      .map(({ annotations }) => annotations[`checksum/${name}`]);
  const [first = ''] = sums(render(), 'secrets');

  it('pods start again when generated secrets are others, or another Secret is named', () => {
    const others = [
      renderAgain(),
      render({ secrets: { existingSecret: 'a' } }),
      render({ secrets: { existingSecret: 'b' } }),
    ];
    const found = [render(), ...others].map((objects) => [...new Set(sums(objects, 'secrets'))]);
    for (const one of found) expect(one).toEqual([expect.stringMatching(/^[0-9a-f]{64}$/)]);
    expect(new Set(found.flat()).size).toBe(4);
    expect(found[0]).toEqual([first]);
  });

  it('pods start again when the broker’s configuration is another, and not when another’s is', () => {
    const sumOf = (values: Values) => podOf(render(values), 'nats').annotations['checksum/config'];
    expect(sumOf({})).toMatch(/^[0-9a-f]{64}$/);
    expect(sumOf({ nats: { fileStoreMax: '12Gi' } })).not.toBe(sumOf({}));
    expect(sumOf({ judge: { votes: 5 } })).toBe(sumOf({}));
  });
});

describe('a stop', () => {
  const answerSeconds = 1200;
  const pods = podsOf(render({ gateway: { answerSeconds }, ...judges }));
  const hook = z.looseObject({ preStop: z.looseObject({ exec: z.object({ command: z.array(z.string()) }) }) });
  const leases = 12;

  it.each(['gateway', 'engine-serving', 'engine-judge'])(
    'a stop of %s waits until no more requests come, and answers',
    (name) => {
      const pod = pods.find(({ component }) => component === name);
      const [serving] = pod?.spec.containers ?? [];
      const [command = '', seconds = ''] = hook.parse(serving?.lifecycle).preStop.exec.command;
      expect(command).toBe('sleep');
      if (name !== 'gateway') expect(Number(seconds)).toBeGreaterThan(leases);
      const left = (pod?.spec.terminationGracePeriodSeconds ?? 0) - Number(seconds);
      expect(left).toBeGreaterThan(answerSeconds);
    },
  );
});

it('a loader keeps a version that has left for longer than any answer may last', () => {
  const [serving] = podsOf(render({ gateway: { answerSeconds: 1200 } })).filter(
    ({ component }) => component === 'engine-serving',
  );
  const variables = serving?.spec.containers.flatMap(({ env = [] }) => env) ?? [];
  const grace = variables.find(({ name }) => name === 'BACKTALK_RETIRE_GRACE');
  expect(Number(grace?.value?.replace(/s$/, ''))).toBeGreaterThan(1200);
});

describe('autoscalers', () => {
  const window = z.looseObject({ stabilizationWindowSeconds: z.number() });
  const behavior = z.looseObject({ scaleUp: window, scaleDown: window });
  const hpa = z.looseObject({ spec: z.looseObject({ behavior }) });
  const scaled = z.looseObject({
    spec: z.looseObject({
      advanced: z.looseObject({ horizontalPodAutoscalerConfig: z.looseObject({ behavior }) }),
    }),
  });
  const times = { scaleUpSeconds: 7, scaleDownSeconds: 77 };
  const asked = (kind: string): Values => ({
    gateway: { autoscaling: { kind, ...times } },
    judge: { autoscaling: { kind, ...times } },
    pools: { serving: { autoscaling: { kind, ...times } } },
    keda: { prometheusUrl: 'http://p:9090' },
  });

  it.each([
    ['hpa', 'HorizontalPodAutoscaler', (object: RenderedObject) => hpa.parse(object).spec.behavior],
    [
      'keda',
      'ScaledObject',
      (object: RenderedObject) => scaled.parse(object).spec.advanced.horizontalPodAutoscalerConfig.behavior,
    ],
  ])('autoscalers of kind %s wait as long as the values say before they follow the load', (kind, made, behaviorOf) => {
    const found = render(asked(kind)).filter((object) => object.kind === made);
    expect(found).toHaveLength(3);
    for (const object of found) {
      const { scaleUp, scaleDown } = behaviorOf(object);
      expect(scaleUp.stabilizationWindowSeconds).toBe(7);
      expect(scaleDown.stabilizationWindowSeconds).toBe(77);
    }
  });
});

describe('pools', () => {
  const gpu = render({}, ['ci/gpu-cluster.yaml']);

  it('pools have shared memory of the size that they are given, where engines look for it', () => {
    const engines = podsOf(gpu).filter(({ component }) => component.startsWith('engine-'));
    expect(engines).toHaveLength(3);
    for (const pod of engines) {
      const { volumeMounts } = containerOf(pod, 'engine');
      const name = volumeMounts.find(({ mountPath }) => mountPath === '/dev/shm')?.name;
      const volume = pod.spec.volumes.find((one) => one.name === name);
      expect(volume).toMatchObject({ emptyDir: { medium: 'Memory', sizeLimit: '8Gi' } });
    }
  });

  it('pools ask for GPUs in the limits of what computes, by the name that the values give', () => {
    const count = (values: Values, component: string, container: string) =>
      containerOf(podOf(render(values, ['ci/gpu-cluster.yaml']), component), container).resources;
    const amd: Values = { poolDefaults: { gpu: { resource: 'amd.com/gpu', count: 2 } } };
    for (const [component, container, number] of [
      ['engine-serving', 'engine', 2],
      ['training', 'training', 1],
    ] as const) {
      const { limits, requests } = count(amd, component, container);
      expect(limits).toMatchObject({ 'amd.com/gpu': number });
      expect(Object.keys(requests)).not.toContain('amd.com/gpu');
    }
    expect(Object.keys(count(amd, 'engine-serving', 'loader').limits)).toEqual(['memory']);
    expect(JSON.stringify(podsOf(render()).map(({ spec }) => spec))).not.toContain('gpu');
  });

  const place = (name: string) => ({
    nodeSelector: { pool: name },
    tolerations: [{ key: name, operator: 'Exists', effect: 'NoSchedule' }],
  });

  it('pools run where the values say, each for itself, beside what holds for all', () => {
    const objects = render({
      nodeSelector: { of: 'all' },
      tolerations: [{ key: 'all', operator: 'Exists' }],
      pools: { serving: place('serving'), judge: { shares: '', ...place('judge') }, training: place('training') },
    });
    for (const name of ['serving', 'judge', 'training']) {
      const { spec } = podOf(objects, name === 'training' ? name : `engine-${name}`);
      const { nodeSelector, tolerations } = place(name);
      expect(spec, name).toMatchObject({
        nodeSelector,
        tolerations: expect.arrayContaining([...tolerations, { key: 'all', operator: 'Exists' }]) as unknown,
      });
    }
    expect(podOf(objects, 'collector').spec).toMatchObject({ nodeSelector: { of: 'all' } });
  });

  it.each([
    [0, { maxSurge: 0, maxUnavailable: 1 }],
    [2, { maxSurge: 2, maxUnavailable: 0 }],
  ])('pools are replaced with %i replicas to spare', (surge, rollingUpdate) => {
    const { object } = podOf(render({ poolDefaults: { surge } }), 'engine-serving');
    expect(object).toMatchObject({ spec: { strategy: { type: 'RollingUpdate', rollingUpdate } } });
  });
});

it('what is one process is never two, not even in an update', () => {
  for (const component of ['collector', 'trainer', 'publisher']) {
    const { object } = podOf(render(), component);
    expect(object, component).toMatchObject({ spec: { replicas: 1, strategy: { type: 'Recreate' } } });
  }
});

describe.each([...valuesFiles.map((file) => [file, {}] as const), ['', judges] as const])(
  'with %s %j',
  (file, values) => {
    const objects = render(values, file === '' ? [] : [file]);

    it('whatever may have several replicas has a budget for drains, of its own pods', () => {
      const selected = z.looseObject({
        spec: z.looseObject({ maxUnavailable: z.number(), selector: z.looseObject({ matchLabels: z.unknown() }) }),
      });
      const budgets = objects
        .filter(({ kind }) => kind === 'PodDisruptionBudget')
        .map((object) => selected.parse(object).spec);
      const scalers = objects.filter(({ kind }) => ['HorizontalPodAutoscaler', 'ScaledObject'].includes(kind));
      const scaled = new Set(scalers.map(({ metadata }) => metadata.name));
      const several = podsOf(objects).filter(
        ({ object }) => scaled.has(object.metadata.name) || replicasOf(object) > 1,
      );
      for (const { object, name } of several) {
        const { matchLabels } = z.looseObject({ matchLabels: z.unknown() }).parse(selectorOf(object));
        const own = budgets.find(
          ({ selector }) => JSON.stringify(selector.matchLabels) === JSON.stringify(matchLabels),
        );
        expect(own?.maxUnavailable, name).toBe(1);
      }
    });
  },
);

const workload = z.looseObject({ spec: z.looseObject({ replicas: z.number().default(0), selector: z.unknown() }) });

function replicasOf(object: RenderedObject): number {
  return isWorkload(object) ? workload.parse(object).spec.replicas : 0;
}

function selectorOf(object: RenderedObject): unknown {
  return workload.parse(object).spec.selector;
}

describe('templates', () => {
  const folder = join(chartFolder, 'templates');
  const files = readdirSync(folder, { recursive: true, encoding: 'utf8' }).filter((name) => /\.(yaml|tpl)$/.test(name));
  const texts = files.map((name) => ({ name, text: readFileSync(join(folder, name), 'utf8') }));

  it('templates are short: 40 lines in the middle, 150 at most', () => {
    const lengths = texts.map(({ text }) => text.split('\n').length).sort((one, other) => one - other);
    expect(lengths[Math.floor(lengths.length / 2)]).toBeLessThanOrEqual(40);
    expect(lengths.at(-1)).toBeLessThanOrEqual(150);
  });

  it('templates make workloads in one place', () => {
    const makers = texts.filter(({ text }) => /^apiVersion: apps\/v1$|^\s*kind: (Deployment|StatefulSet)$/m.test(text));
    expect(makers.map(({ name }) => name)).toEqual(['_workload.tpl']);
  });
});
