// A value changes what it says and nothing else: the defaults, plus this difference.
import { vllmProgram } from '@backtalk/deploy';
import { loadRecipe, recipePresets } from '@backtalk/trainer/recipe';
import { describe, expect, it } from 'vitest';
import { z } from 'zod';
import { environmentOf, type PodFacts } from './environment.js';
import { render, type RenderedObject, type Values } from './helm.js';
import { notes } from './api-server.js';
import { containerOf, podOf } from './pods.js';

function named(objects: readonly RenderedObject[]): Map<string, string> {
  const entries = objects.map((object) => {
    const text = JSON.stringify(object).replaceAll(/"checksum\/secrets":"[^"]*"/g, '');
    return [`${object.kind} ${object.metadata.name.replace('loop-backtalk-', '')}`, text] as const;
  });
  return new Map(entries.filter(([name]) => !name.startsWith('Secret ')));
}

/** Names of objects that are changed (~), new (+) or gone (-). */
function differenceTo(values: Values): string[] {
  const [before, after] = [named(render()), named(render(values))];
  const changed = [...after].filter(([name, text]) => before.has(name) && before.get(name) !== text);
  const added = [...after.keys()].filter((name) => !before.has(name));
  const gone = [...before.keys()].filter((name) => !after.has(name));
  return [
    ...changed.map(([name]) => `~ ${name}`),
    ...added.map((name) => `+ ${name}`),
    ...gone.map((name) => `- ${name}`),
  ]
    .map((line) => line.replace(/streams-\w+/, 'streams'))
    .sort();
}

const cases: readonly (readonly [string, Values, readonly string[]])[] = [
  ['the collector’s memory', { collector: { resources: { limits: { memory: '1Gi' } } } }, ['~ Deployment collector']],
  ['the judge’s votes', { judge: { votes: 5 } }, ['~ StatefulSet judge']],
  [
    'replicas that the values own',
    { gateway: { replicas: 3, autoscaling: { kind: 'none' } } },
    ['- HorizontalPodAutoscaler gateway', '~ StatefulSet gateway'],
  ],
  ['the Service’s type', { gateway: { service: { type: 'LoadBalancer' } } }, ['~ Service gateway']],
  ['an Ingress', { ingress: { enabled: true, host: 'a.example.com' } }, ['+ Ingress gateway']],
  ['how long turns are kept', { streams: { turnsAge: '8h' } }, ['+ Job streams', '- Job streams']],
  [
    'no ServiceMonitor',
    { metrics: { serviceMonitor: { enabled: false } } },
    // Rules ask for a release's parts only where their labels are set.
    ['- ServiceMonitor metrics', '~ PrometheusRule alerts-backtalk'],
  ],
  [
    'a judge pool of its own',
    { pools: { judge: { shares: '' } } },
    [
      '+ Deployment engine-judge',
      '+ HorizontalPodAutoscaler engine-judge',
      '+ NetworkPolicy engine-judge',
      '+ PodDisruptionBudget engine-judge',
      '+ Service engine-judge-pods',
      '~ Deployment engine-serving',
      '~ NetworkPolicy engine-serving',
      '~ NetworkPolicy judge',
      '~ PrometheusRule alerts-backtalk',
      '~ StatefulSet judge',
    ],
  ],
  [
    'a judge pool of its own whose model reads',
    { judge: { backend: 'free' }, pools: { judge: { shares: '' } } },
    [
      '+ Deployment engine-judge',
      '+ HorizontalPodAutoscaler engine-judge',
      '+ NetworkPolicy engine-judge',
      '+ PodDisruptionBudget engine-judge',
      '+ Service engine-judge-pods',
      '~ Deployment engine-serving',
      '~ Deployment trainer',
      '~ NetworkPolicy engine-serving',
      '~ NetworkPolicy judge',
      '~ NetworkPolicy trainer',
      '~ PrometheusRule alerts-backtalk',
      '~ StatefulSet judge',
    ],
  ],
  [
    'an object of the reader’s own',
    { extraObjects: [{ apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: '{{ .Release.Name }}-own' } }] },
    ['+ ConfigMap loop-own'],
  ],
];

it.each(cases)('a value changes nothing but its own objects: %s', (_, values, expected) => {
  expect(differenceTo(values)).toEqual([...expected].sort());
});

/** The words after the flag, up to the next one. */
function layersIn(args: readonly string[]): string[] {
  const after = args.slice(args.indexOf('--lora-target-modules') + 1);
  const next = after.findIndex((word) => word.startsWith('-'));
  return next === -1 ? after : after.slice(0, next);
}

const noFacts: PodFacts = { podIp: '', podName: '', secrets: {} };

describe('engines', () => {
  const gpu = render({}, ['ci/gpu-cluster.yaml']);

  it('vLLM gets the flags that swaps need', () => {
    const engine = containerOf(podOf(gpu, 'engine-serving'), 'engine');
    const flags = [
      '--enable-lora',
      '--max-loras=3',
      '--max-cpu-loras=8',
      '--max-lora-rank=64',
      '--shutdown-timeout=600',
    ];
    expect(engine.args).toEqual(expect.arrayContaining([...flags, ...vllmProgram.swapFlags]));
    const named = engine.env.map(({ name, value }) => `${name}=${value ?? 'by reference'}`);
    expect(named).toEqual(
      expect.arrayContaining(['VLLM_ALLOW_RUNTIME_LORA_UPDATING=True', 'VLLM_API_KEY=by reference']),
    );
    expect(engine.resources.limits['nvidia.com/gpu']).toBe(1);
  });

  it.each(['engine-serving', 'engine-evaluation'])(
    'adapters in %s change the layers that they change where a real vLLM was run, and never the head',
    (component) => {
      const { args } = containerOf(podOf(gpu, component), 'engine');
      expect(layersIn(args)).toEqual(vllmProgram.adaptedLayers);
      expect(layersIn(args)).toHaveLength(7);
    },
  );

  it.each(Object.keys(recipePresets))('loaders ask engines for the rank of the recipe %s', (recipe) => {
    const objects = render({ trainer: { recipe, recipeSet: { waitMs: 2_000_000, learningRate: 0.00001 } } });
    const trainer = environmentOf(containerOf(podOf(objects, 'trainer'), 'trainer'), noFacts);
    const loader = environmentOf(containerOf(podOf(objects, 'engine-serving'), 'loader'), noFacts);
    const reading = loadRecipe(trainer['BACKTALK_RECIPE'] ?? '', trainer['BACKTALK_RECIPE_SET'] ?? '');
    const loraRank = Number(loader['BACKTALK_LORA_RANK']);
    expect(reading).toMatchObject({ recipe: { loraRank, waitMs: 2_000_000, learningRate: 1e-5 } });
  });

  it('the trainer is told what takes the steps behind its training workers', () => {
    const backendOf = (objects: readonly RenderedObject[]) =>
      environmentOf(containerOf(podOf(objects, 'trainer'), 'trainer'), noFacts)['BACKTALK_TRAINING_BACKEND'];
    const env = { BACKTALK_TRAINING_BACKEND: 'tinker', BACKTALK_TINKER_URL: 'http://there' };
    expect(backendOf(render({ trainer: { recipe: 'remote' }, pools: { training: { env } } }))).toBe('tinker');
    expect(backendOf(gpu)).toBeUndefined();
  });

  it('loaders refuse engines that do not fit what trainer and engines are told', () => {
    const trainer = environmentOf(containerOf(podOf(gpu, 'trainer'), 'trainer'), noFacts);
    const training = environmentOf(containerOf(podOf(gpu, 'training'), 'training'), noFacts);
    for (const component of ['engine-serving', 'engine-evaluation']) {
      const pod = podOf(gpu, component);
      const loader = environmentOf(containerOf(pod, 'loader'), noFacts);
      const { args } = containerOf(pod, 'engine');
      expect(loader['BACKTALK_BASE_MODEL']).toBe(training['BACKTALK_BASE_MODEL']);
      expect(args).toContain(`--served-model-name=${loader['BACKTALK_BASE_MODEL'] ?? ''}`);
      expect(args.join(' ')).toMatch(
        new RegExp(`--(max-model-len|context-length)=${loader['BACKTALK_CONTEXT_MIN'] ?? ''}( |$)`),
      );
      const reading = loadRecipe(trainer['BACKTALK_RECIPE'] ?? '', trainer['BACKTALK_RECIPE_SET'] ?? '');
      expect(reading).toMatchObject({ recipe: { loraRank: Number(loader['BACKTALK_LORA_RANK']), learningRate: 1e-4 } });
      const rankMax = args.find((flag) => flag.startsWith('--max-lora-rank='))?.split('=')[1];
      expect(Number(loader['BACKTALK_LORA_RANK'])).toBeLessThanOrEqual(Number(rankMax));
    }
  });

  it('the trainer asks the judges’ engines as judges do, and other engines with their own key', () => {
    const variablesOf = (component: string) => {
      const env = podOf(gpu, component).spec.containers.flatMap((container) => container.env);
      return new Map(env.map(({ name, value, valueFrom }) => [name, value ?? valueFrom?.secretKeyRef?.key]));
    };
    const [judge, trainer] = [variablesOf('judge'), variablesOf('trainer')];
    for (const name of ['BACKEND', 'URL', 'DIALECT', 'MODEL'].map((name) => `BACKTALK_JUDGE_${name}`)) {
      expect(judge.get(name), name).toBeDefined();
      expect(trainer.get(name), name).toBe(judge.get(name));
    }
    expect(trainer.get('BACKTALK_JUDGE_KEY')).toBe(judge.get('BACKTALK_ENGINE_KEY'));
    expect(trainer.get('BACKTALK_ENGINE_KEY')).not.toBe(judge.get('BACKTALK_ENGINE_KEY'));
  });

  it('judges’ engines hold no adapters and have no loader', () => {
    const { spec } = podOf(gpu, 'engine-judge');
    expect(spec.containers.map(({ name }) => name)).toEqual(['engine']);
    expect(spec.containers[0]?.args).not.toContain('--enable-lora');
  });

  it('the serving engines take the place of pools that share them', () => {
    const loader = containerOf(podOf(render(), 'engine-serving'), 'loader');
    const pools = loader.env.find(({ name }) => name === 'BACKTALK_ENGINE_POOLS')?.value;
    expect(pools?.split(',').sort()).toEqual(['evaluation', 'judge', 'rollout', 'serving']);
  });

  it('engines and gateways have longer to stop than the longest answer takes', () => {
    for (const component of ['gateway', 'engine-serving', 'engine-evaluation', 'engine-judge']) {
      expect(podOf(gpu, component).spec.terminationGracePeriodSeconds).toBeGreaterThan(600);
    }
  });
});

describe('no replicas at all', () => {
  const replicas = z.looseObject({ spec: z.looseObject({ replicas: z.number() }) });
  const none: Values = { replicas: 0, autoscaling: { kind: 'none' } };
  const cases: readonly (readonly [string, Values])[] = [
    ['collector', { collector: { replicas: 0 } }],
    ['gateway', { gateway: none }],
    ['judge', { judge: none }],
    ['engine-serving', { pools: { serving: { replicas: 0 } } }],
    ['engine-evaluation', { pools: { evaluation: { shares: '', replicas: 0 } } }],
  ];

  it.each(cases)('%s without replicas stands still, and is not one all the same', (component, values) => {
    expect(replicas.parse(podOf(render(values), component).object).spec.replicas).toBe(0);
  });
});

describe('kinds of operators', () => {
  const scaled = z.looseObject({
    spec: z.looseObject({
      scaleTargetRef: z.looseObject({ kind: z.string(), name: z.string() }),
      minReplicaCount: z.number(),
      maxReplicaCount: z.number(),
      triggers: z.array(z.looseObject({ type: z.string(), metadata: z.record(z.string(), z.string()) })),
    }),
  });

  it('a ScaledObject names its workload, and asks for the oldest waiting vote and for JetStream’s lag', () => {
    const found = render({}, ['ci/gpu-cluster.yaml']).find(
      ({ kind, metadata }) => kind === 'ScaledObject' && metadata.name.endsWith('-judge'),
    );
    const { spec } = scaled.parse(found);
    expect(spec.scaleTargetRef).toMatchObject({ kind: 'StatefulSet', name: 'loop-backtalk-judge' });
    expect(spec.triggers.map(({ type }) => type)).toEqual(['prometheus', 'nats-jetstream']);
    expect(spec.triggers[0]?.metadata['query']).toContain('backtalk_judge_votes_oldest_age_seconds{namespace="llm",');
  });

  it('dashboards carry the labels and annotations that Grafana’s sidecar looks for', () => {
    const annotations = { grafana_folder: 'Backtalk' };
    const objects = render({ metrics: { dashboards: { labels: { team: 'agents' }, annotations } } });
    const dashboards = objects.filter(({ metadata }) => metadata.name.includes('-dashboard-'));
    expect(dashboards.length).toBeGreaterThan(5);
    for (const { metadata } of dashboards)
      expect(metadata).toMatchObject({ annotations, labels: { grafana_dashboard: '1', team: 'agents' } });
  });

  it('alert rules keep their templates, and a monitor carries the reader’s labels', () => {
    const labels = { release: 'prometheus' };
    const objects = render({ metrics: { serviceMonitor: { labels }, alerts: { labels } } });
    const ours = objects.filter(({ kind }) => ['ServiceMonitor', 'PrometheusRule'].includes(kind));
    for (const { metadata } of ours) expect(metadata.labels).toMatchObject(labels);
    expect(ours.map(({ kind }) => kind)).toContain('ServiceMonitor');
  });

  it('an engine that starts within the longest budget of its pools raises no alert', () => {
    const waited = (values: Readonly<Record<string, unknown>>) =>
      /"alert":"BacktalkEngineNotReady".*?"for":"(\w+)"/.exec(
        JSON.stringify(render(values).filter(({ kind }) => kind === 'PrometheusRule')),
      )?.[1];
    expect(waited({})).toBe('960s');
    expect(waited({ pools: { serving: { startSeconds: 2400 } } })).toBe('2460s');
  });

  it.each([
    ['words', false],
    ['rules', false],
    ['free', true],
  ])('judges without an engine raise an alert where votes are asked for (%s: %s)', (backend, isThere) => {
    const rules = JSON.stringify(render({ judge: { backend } }).filter(({ kind }) => kind === 'PrometheusRule'));
    expect(rules.includes('BacktalkJudgeNoEngine')).toBe(isThere);
  });

  it.each([
    ['', 'RUNBOOK.md#'],
    ['https://example.com/backtalk/', 'https://example.com/backtalk/RUNBOOK.md#'],
  ])('alerts name the runbook at its address (%j)', (runbookUrl, start) => {
    const rules = JSON.stringify(
      render({ metrics: { alerts: { runbookUrl } } }).filter(({ kind }) => kind === 'PrometheusRule'),
    );
    const addresses = [...rules.matchAll(/"runbook_url":"([^"]*)"/g)].map(([, address = '']) => address);
    expect(addresses.length).toBeGreaterThan(20);
    for (const address of addresses) expect(address.slice(0, address.indexOf('#') + 1)).toBe(start);
  });
});

it('engines for rehearsals, which are not built, are named after an installation', async () => {
  const words = 'pools.rollout is not built yet';
  expect(await notes({ pools: { rollout: { shares: '' } } })).toContain(words);
  expect(await notes()).not.toContain(words);
});

it('the words after an installation say what to do next and what is not safe', async () => {
  const words = await notes();
  for (const part of ['rollout status', 'OPENAI_API_KEY', 'helm -n llm test loop', 'single one', 'in clear']) {
    expect(words).toContain(part);
  }
});
