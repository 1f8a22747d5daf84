// Values that cannot work are refused by `helm template`, in words that name the value.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { repositoryRoot } from '@backtalk/kit/testing';
import { recipePresets } from '@backtalk/trainer/recipe';
import { describe, expect, it } from 'vitest';
import { parse } from 'yaml';
import { refusal, render, renderBelow, type Values } from './helm.js';
import { complaintsAbout } from './started-in.js';

const ofTheSchema: readonly (readonly [string, Values, RegExp])[] = [
  ['a value that does not exist', { gatway: {} }, /additional properties 'gatway' not allowed/],
  ['a value in the wrong place', { nats: { replicas: 3 } }, /'\/nats': additional properties 'replicas' not allowed/],
  [
    'an unknown engine',
    { pools: { serving: { engine: 'tgi' } } },
    /pools\/serving\/engine.*'builtin', 'vllm', 'sglang'/,
  ],
  ['text for a number', { gateway: { answerSeconds: 'long' } }, /gateway\/answerSeconds.*want integer/],
  ['a size without a unit', { nats: { size: '20' } }, /nats\/size.*does not match pattern/],
  ['a condition that is no truth', { enabled: 'yes' }, /'\/enabled'.*want boolean/],
  ['a digest that is none', { images: { services: { digest: 'sha256:abc' } } }, /images\/services\/digest.*pattern/],
  ['fewer places than a swap needs', { poolDefaults: { adapters: { loaded: 2 } } }, /adapters\/loaded.*minimum/],
  ['two copies', { streams: { replicas: 2 } }, /streams\/replicas/],
  ['a laptop’s profile', { profile: 'laptop' }, /profile.*'trial', 'production'/],
  ['adapters of the head', { model: { loraTargetModules: ['q_proj', 'lm_head'] } }, /model\/loraTargetModules\/1.*not/],
  ['two collectors', { collector: { replicas: 2 } }, /collector\/replicas.*maximum/],
  ['days that are no duration', { streams: { turnsAge: '30d' } }, /streams\/turnsAge.*does not match pattern/],
  ['turns kept for a number of days', { streams: { turnsDays: 30 } }, /'turnsDays' not allowed/],
  ['a runbook that is no address', { metrics: { alerts: { runbookUrl: 'docs' } } }, /alerts\/runbookUrl.*pattern/],
  [
    'more devices than one pod trains on',
    { pools: { training: { gpu: { count: 17 } } } },
    /training\/gpu\/count.*maximum/,
  ],
  ['a quantization that nothing has', { model: { quantization: 'int4' } }, /model\/quantization.*'none', 'nf4'/],
  ['a revision that moves', { model: { revision: 'main' } }, /model\/revision.*pattern/],
  ['a text that is no fraction', { policy: { temperature: 'warm' } }, /policy\/temperature.*pattern/],
  ['a variable with no name', { gateway: { env: { 'a-b': 'c' } } }, /'\/gateway\/env': additional properties 'a-b'/],
  ['an image where a pod is merged', { pod: { container: { image: 'x' } } }, /pod\/container\/image/],
  ['a threshold of nothing', { gateway: { autoscaling: { perReplica: 0 } } }, /autoscaling\/perReplica/],
  [
    'a number that no recipe has',
    { trainer: { recipeSet: { foo: 1 } } },
    /'\/trainer\/recipeSet': additional properties 'foo' not allowed/,
  ],
  ['no training worker', { pools: { training: { replicas: 0 } } }, /training\/replicas.*minimum/],
  ['a policy twice', { policy: { others: ['ada', 'ada'] } }, /policy\/others.*(unique|equal)/],
];

const external = {
  enabled: false,
  external: { url: 'nats://nats:4222', monitorUrl: 'http://nats:8222', existingSecret: 'broker' },
};

const gpuModel = { name: 'qwen3-8b', hub: 'a/b', revision: '0'.repeat(40) };

const ofTheTemplates: readonly (readonly [string, Values, RegExp])[] = [
  [
    'turns that are gone before their session is over',
    { streams: { turnsAge: '30m' }, collector: { sessionIdleSeconds: 7_200 } },
    /streams\.turnsAge: must be longer than collector\.sessionIdleSeconds/,
  ],
  [
    'a tag that moves',
    { images: { vllm: { tag: 'latest' } } },
    /images\.vllm\.tag: latest .* use a version or a digest/,
  ],
  [
    'a spool that dies with its pod',
    { gateway: { spool: { type: 'emptyDir' } } },
    /gateway\.spool\.type: .*capture=best-effort/,
  ],
  ['a policy that is there already', { policy: { others: ['backtalk'] } }, /policy\.others: backtalk is policy\.name/],
  [
    'a policy with the name of a version',
    { policy: { others: ['backtalk-v2'] } },
    /policy: backtalk-v2 is the name of a/,
  ],
  [
    'a policy with the name of the base',
    { policy: { others: ['smollm2-135m-wishes'] } },
    /policy: smollm2-135m-wishes is model\.name/,
  ],
  [
    'more training pods than policies',
    { policy: { others: ['ada'] }, pools: { training: { replicas: 3 } } },
    /pools\.training\.replicas: 3 training pods for 2 policies/,
  ],
  ['a spool as large as its volume', { gateway: { spool: { max: '2Gi' } } }, /gateway\.spool\.max: must be less/],
  ['two owners of replicas', { gateway: { replicas: 3 } }, /gateway\.replicas: .*owns the replicas/],
  [
    'two owners of a pool',
    { pools: { serving: { replicas: 2, autoscaling: { kind: 'hpa' } } } },
    /pools\.serving\.replicas: /,
  ],
  ['an empty range', { judge: { autoscaling: { min: 9 } } }, /judge\.autoscaling\.min: is more than/],
  ['KEDA without a Prometheus', { judge: { autoscaling: { kind: 'keda' } } }, /keda\.prometheusUrl: /],
  [
    'KEDA without the labels that tell pools apart',
    {
      judge: { autoscaling: { kind: 'keda' } },
      keda: { prometheusUrl: 'http://p:9090' },
      metrics: { serviceMonitor: { enabled: false } },
    },
    /metrics\.serviceMonitor\.enabled: judge\.autoscaling\.kind=keda .* or keda\.queries\.judge/,
  ],
  ['production on one broker', { profile: 'production' }, /nats\.enabled: profile production/],
  [
    'production on single copies',
    { profile: 'production', nats: external },
    /streams\.replicas: profile production needs 3/,
  ],
  [
    'production that cannot ask the broker',
    {
      profile: 'production',
      streams: { replicas: 3 },
      nats: { ...external, external: { ...external.external, monitorUrl: '' } },
    },
    /nats\.external\.monitorUrl: /,
  ],
  ['three copies on one broker', { streams: { replicas: 3 } }, /streams\.replicas: .*single one/],
  [
    'a store as large as its volume',
    { nats: { fileStoreMax: '20Gi' } },
    /nats\.fileStoreMax: must be less than nats\.size/,
  ],
  ['turns that leave no room for weights', { streams: { turnsMax: '16Gi' } }, /streams\.turnsMax: must be less/],
  ['no broker', { nats: { enabled: false } }, /nats\.external\.url: give/],
  [
    'a broker without passwords',
    { nats: { enabled: false, external: { url: 'nats://n:4222' } } },
    /nats\.external\.existingSecret: /,
  ],
  ['no Valkey', { valkey: { enabled: false } }, /valkey\.external\.existingSecret: /],
  ['S3 without a bucket', { blobs: { store: 's3' } }, /blobs\.s3\.bucket: /],
  ['an Ingress without a host', { ingress: { enabled: true } }, /ingress\.host: /],
  [
    'vLLM without a model',
    { pools: { serving: { engine: 'vllm' } } },
    /pools\.serving\.engine: vllm needs model\.hub or model\.path/,
  ],
  [
    'an engine for a pool without engines',
    { pools: { judge: { engine: 'vllm' } } },
    /pools\.judge\.shares: .*set shares to ''/,
  ],
  [
    'an evaluation pool with another base',
    { pools: { evaluation: { shares: '', model: { name: 'other' } } } },
    /pools\.evaluation\.model\.name: only the judge pool/,
  ],
  [
    'an evaluation pool with less context',
    { model: { lengthMax: 8192 }, pools: { evaluation: { shares: '', model: { lengthMax: 4096 } } } },
    /pools\.evaluation\.model\.lengthMax: is less than model\.lengthMax/,
  ],
  [
    'a type that training does not compute in',
    { model: { dtype: 'float16' } },
    /pools\.training\.model\.dtype: .*bfloat16 or float32/,
  ],
  [
    'a base in four bits on an engine that training does not follow',
    {
      model: { ...gpuModel, quantization: 'nf4' },
      judge: { backend: 'free' },
      pools: { serving: { engine: 'sglang' } },
    },
    /pools\.serving\.model\.quantization: nf4 is served by vllm and builtin/,
  ],
  [
    'training on another base than the one that is served',
    { model: { quantization: 'nf4' }, pools: { training: { model: { quantization: 'none' } } } },
    /pools\.training\.model\.quantization: engines and training hold the base alike/,
  ],
  [
    'a base in four bits that is cut into shards',
    { model: { quantization: 'nf4' }, pools: { training: { env: { BACKTALK_TRAINING_SHARDING: 'on' } } } },
    /BACKTALK_TRAINING_SHARDING: each process holds all of a base in 4 bits/,
  ],
  [
    'a base in four bits that a training service holds',
    { model: { quantization: 'nf4' }, pools: { training: { env: { BACKTALK_TRAINING_BACKEND: 'tinker' } } } },
    /BACKTALK_TRAINING_BACKEND: a training service holds the base itself/,
  ],
  [
    'a base in four bits that computes in 64',
    { model: { quantization: 'nf4', dtype: 'float64' } },
    /pools\.training\.model\.dtype: a base in 4 bits computes in bfloat16 or float32/,
  ],
  [
    'judges on an engine whose dialect the judge lacks',
    {
      judge: { backend: 'free' },
      pools: { judge: { shares: '', engine: 'sglang', model: { name: 'judge', hub: 'a/b' } } },
    },
    /pools\.judge\.engine: judges speak to builtin or vllm/,
  ],
  [
    'a type that engines do not compute in',
    { model: { dtype: 'float64', hub: 'a/b' }, pools: { serving: { engine: 'vllm' } } },
    /pools\.serving\.model\.dtype: vllm/,
  ],
  [
    'vLLM without a GPU',
    { model: gpuModel, judge: { backend: 'free' }, pools: { serving: { engine: 'vllm' } } },
    /pools\.serving\.gpu\.count: vllm runs on a GPU/,
  ],
  [
    'a GPU for the built-in engine',
    { pools: { serving: { gpu: { count: 1 } } } },
    /pools\.serving\.gpu\.count: the built-in engine runs on the CPU/,
  ],
  [
    'three GPUs for an engine',
    { model: gpuModel, judge: { backend: 'free' }, pools: { serving: { engine: 'vllm', gpu: { count: 3 } } } },
    /pools\.serving\.gpu\.count: 3 GPUs divide few/,
  ],
  [
    'the CPU model’s memory for vLLM',
    { model: gpuModel, judge: { backend: 'free' }, pools: { serving: { engine: 'vllm', gpu: { count: 1 } } } },
    /pools\.serving\.resources\.limits\.memory: 4Gi leaves less than 4Gi beside shm/,
  ],
  [
    'shared memory that fills the limit',
    { pools: { serving: { shm: '64Gi' } } },
    /pools\.serving\.resources\.limits\.memory: 4Gi is not more than shm/,
  ],
  [
    'a cache as large as its volume',
    { pools: { training: { cache: { max: '5Gi' } } } },
    /training\.cache\.max: must be less/,
  ],
  [
    'a Valkey whose file outgrows its volume',
    { valkey: { size: '1Gi' } },
    /valkey\.size: 1Gi is less than three times valkey\.memoryMax \(512mb\)/,
  ],
  ['a Valkey as large as its limit', { valkey: { memoryMax: '1gb' } }, /valkey\.memoryMax: must be less/],
  ['a hub without a commit', { model: { hub: 'a/b' } }, /model\.revision: give the commit of a\/b/],
  ['no engines at all', { poolDefaults: { shares: 'serving' } }, /poolDefaults\.shares: pools\.serving shares nobody/],
  [
    'a temperature as text that is too high',
    { policy: { temperature: '2.5' } },
    /policy\.temperature: must be from 0 to 2/,
  ],
  ['a share as text that is more than all', { judge: { voteShare: '1.5' } }, /judge\.voteShare: must be from 0 to 1/],
  ['a claim without a folder', { model: { claim: 'weights' } }, /model\.path: say where/],
  [
    'a model of judges alone that nothing asks',
    { pools: { judge: { shares: '', model: { name: 'other' } } } },
    /judge\.backend: words asks no model, and pools\.judge has one of its own, other; set free/,
  ],
  [
    'a rank that engines do not take',
    { trainer: { recipeSet: { loraRank: 128 } } },
    /trainer\.recipe: loraRank is more than adapters\.rankMax/,
  ],
  [
    'no room for a version more',
    { poolDefaults: { adapters: { loaded: 4, kept: 4 } } },
    /adapters\.kept: must be more/,
  ],
];

describe.each([
  ['the schema', ofTheSchema],
  ['the templates', ofTheTemplates],
])('%s', (_, cases) => {
  it.each(cases)('refuses %s', (_what, values, words) => {
    expect(refusal(values)).toMatch(words);
  });
});

it('a tag that moves is taken beside a digest, which says what is pulled', () => {
  const digest = `sha256:${'0'.repeat(64)}`;
  expect(refusal({ images: { services: { tag: 'latest', digest } } })).toBe('');
});

describe('a chart that depends on this one', () => {
  it('a chart above may say by backtalk.enabled whether there is anything of this one', () => {
    const kinds = new Set(renderBelow({ enabled: true }).map(({ kind }) => kind));
    expect([...kinds]).toEqual(expect.arrayContaining(['Deployment', 'StatefulSet', 'Service', 'Secret']));
    expect(renderBelow({ enabled: false })).toEqual([]);
  });
});

it('one run names every value that the schema refuses', () => {
  const complaint = refusal({ profile: 'x', logLevel: 'y', nats: { size: 'z' } });
  for (const name of ['/profile', '/logLevel', '/nats/size']) expect(complaint).toContain(name);
});

it('fractions may be texts, as `--set` makes them, and reach the services as they are', () => {
  const values = {
    policy: { temperature: '0.7' },
    judge: { voteShare: '0.25' },
    publisher: { driftMax: '12.5', parityMax: '0.05', behaviourLevel: '0.02' },
    trainer: { recipeSet: { learningRate: '1e-4' } },
    gateway: { autoscaling: { perReplica: '150.5' } },
  };
  expect(complaintsAbout(render(values))).toEqual([]);
  const written = JSON.stringify(render(values));
  for (const text of ['0.7', '0.25', '12.5', '0.05', '0.02', 'learningRate=1e-4'])
    expect(written).toContain(`"${text}"`);
});

it('the names that trainer.recipeSet takes are those of the recipe, which the trainer refuses others of', () => {
  const schema = parse(readFileSync(join(repositoryRoot(), 'charts', 'backtalk', 'values.schema.json'), 'utf8')) as {
    properties: { trainer: { properties: { recipeSet: { patternProperties: Record<string, unknown> } } } };
  };
  const [pattern = ''] = Object.keys(schema.properties.trainer.properties.recipeSet.patternProperties);
  const names = pattern.replace(/^\^\(|\)\$$/g, '').split('|');
  expect(names.sort()).toEqual(Object.keys(recipePresets.tiny.recipe).sort());
});
