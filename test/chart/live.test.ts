// An upgrade looks at what the cluster holds: what Kubernetes would refuse is refused before anything is touched, and
// replicas, names and secrets stay. Helm asks a stand-in for the API server, as it would ask the real one.
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { z } from 'zod';
import { startApiServer } from './api-server.js';
import { chartFolder, render, renderBlind, renderOn, valuesFiles, type RenderedObject, type Values } from './helm.js';

async function upgraded(held: readonly RenderedObject[], values: Values): Promise<RenderedObject[]> {
  const server = await startApiServer([...render(), ...held], held);
  try {
    return await renderOn(server.kubeconfig, values);
  } finally {
    await server.stop();
  }
}

/** What Helm complains of; empty where it renders. */
async function complaint(held: readonly RenderedObject[], values: Values): Promise<string> {
  try {
    await upgraded(held, values);
    return '';
  } catch (error) {
    return z.looseObject({ stderr: z.string() }).parse(error).stderr;
  }
}

function held(values: Values = {}): RenderedObject[] {
  return render(values).filter(({ kind }) => ['StatefulSet', 'Deployment', 'Secret'].includes(kind));
}

describe('volumes', () => {
  const bestEffort = { capture: 'best-effort' };
  const changes: readonly (readonly [string, Values])[] = [
    ['gateway.spool.size', { gateway: { spool: { size: '4Gi' } } }],
    ['gateway.spool.type', { gateway: { ...bestEffort, spool: { type: 'emptyDir' } } }],
    ['gateway.spool.storageClass', { gateway: { spool: { storageClass: 'fast' } } }],
    ['nats.size', { nats: { size: '40Gi' } }],
    ['valkey.storageClass', { valkey: { storageClass: 'fast' } }],
    ['pools.training.cache.size', { pools: { training: { cache: { size: '9Gi' } } } }],
    ['storage.class', { storage: { class: 'fast' } }],
  ];

  it.each(changes)('refuses another %s before anything is touched, and says what to do', async (name, values) => {
    const words = await complaint(held(), values);
    expect(words).toContain(name);
    expect(words).toMatch(/Nothing was touched. README.md, .*Volumes that must grow or move/);
  });

  it.each([
    ['in another unit', { gateway: { spool: { size: '2048Mi' } } }],
    ['with what may change', { nats: { resources: { limits: { memory: '3Gi' } } } }],
  ])('takes the same volumes %s', async (_, values) => {
    expect(await complaint(held(), values)).toBe('');
  });

  it('takes another size where the StatefulSet was taken away as README says', async () => {
    const others = held().filter(({ metadata }) => !metadata.name.endsWith('-nats'));
    expect(await complaint(others, { nats: { size: '40Gi' } })).toBe('');
  });
});

describe('replicas', () => {
  const workload = z.looseObject({ spec: z.looseObject({ replicas: z.number().optional() }) });
  const gatewayOf = (objects: readonly RenderedObject[]) => {
    const found = objects.find(({ kind, metadata }) => kind === 'StatefulSet' && metadata.name.endsWith('-gateway'));
    return { object: found, replicas: workload.parse(found).spec.replicas };
  };
  const fixed = held({ gateway: { replicas: 3, autoscaling: { kind: 'none' } } });
  const scaled = { gateway: { autoscaling: { min: 2 } } };
  const scaler = render(scaled).filter(({ kind }) => kind === 'HorizontalPodAutoscaler');

  it('an autoscaler takes over as many as there are', async () => {
    expect(gatewayOf(await upgraded(fixed, scaled)).replicas).toBe(3);
  });

  it('a least above what an autoscaler has by then is left to the autoscaler', async () => {
    const { object } = gatewayOf(await upgraded(fixed, scaled));
    const more = { gateway: { autoscaling: { min: 6, max: 8 } } };
    expect(gatewayOf(await upgraded([object as RenderedObject, ...scaler], more)).replicas).toBe(3);
  });

  it('KEDA may take over from an autoscaler of before', () => {
    expect(scaler[0]?.metadata).toMatchObject({ annotations: { 'validations.keda.sh/hpa-ownership': 'false' } });
  });

  it('what was handed over once stays in the manifest, as many as there are by then', async () => {
    const { object } = gatewayOf(await upgraded(fixed, scaled));
    const grown = { ...object, spec: { ...(object?.['spec'] as object), replicas: 5 } } as RenderedObject;
    expect(gatewayOf(await upgraded([grown, ...scaler], scaled)).replicas).toBe(5);
  });

  it('what an autoscaler owned from the beginning stays its own', async () => {
    expect(gatewayOf(await upgraded([...held(scaled), ...scaler], scaled)).replicas).toBeUndefined();
  });

  it('a workload that was taken from its pods, so that volumes may grow, comes back with as many as its autoscaler knows', async () => {
    const busy = scaler.map((one) => ({ ...one, status: { currentReplicas: 4 } }));
    expect(gatewayOf(await upgraded(busy, scaled)).replicas).toBe(4);
  });

  it('an autoscaler never begins with fewer than its least', async () => {
    const one = held({ gateway: { replicas: 0, autoscaling: { kind: 'none' } } });
    expect(gatewayOf(await upgraded(one, scaled)).replicas).toBe(2);
  });
});

describe('names', () => {
  it.each([
    ['fullnameOverride', { fullnameOverride: 'other' }],
    ['nameOverride', { nameOverride: 'other' }],
  ])('refuses another %s, which would leave volumes and Secret behind', async (_, values) => {
    expect(await complaint(held(), values)).toContain('set fullnameOverride=loop-backtalk');
  });
});

describe('secrets', () => {
  const own = { secrets: { generate: false, existingSecret: 'own' } };
  const secret = render().find(({ kind }) => kind === 'Secret');
  const data = z.looseObject({ data: z.record(z.string(), z.string()) }).parse(secret).data;
  const named = (kept: Record<string, string>) =>
    ({ ...secret, metadata: { ...secret?.metadata, name: 'own' }, data: kept }) as RenderedObject;

  it('refuses a password of Valkey that no address can hold', async () => {
    const wrong = { ...data, 'valkey-password': Buffer.from('b/c+d=').toString('base64') };
    expect(await complaint([named(wrong)], own)).toContain(
      'valkey-password in the Secret own has characters that an address cannot hold',
    );
  });

  it('refuses a Secret that lacks a key, by the key’s name', async () => {
    const { 'call-cli-publisher': token, ...others } = data;
    expect(token).toBeDefined();
    expect(await complaint([named(others)], own)).toContain('the Secret own lacks the keys call-cli-publisher');
    expect(await complaint([named(data)], own)).toBe('');
  });

  const external = { enabled: false, external: { url: 'nats://n:4222', existingSecret: 'given' } };
  const hub = { name: 'm', hub: 'a/b', revision: '0'.repeat(40), existingSecret: 'given' };
  const s3 = { store: 's3', s3: { bucket: 'b', existingSecret: 'given' } };

  it.each([
    ['nats.external.existingSecret', { nats: external }, 'nats-judge'],
    [
      'valkey.external.existingSecret',
      { valkey: { enabled: false, external: { existingSecret: 'given' } } },
      'valkey-url',
    ],
    ['gateway.keys.existingSecret', { gateway: { keys: { existingSecret: 'given' } } }, 'keys.json, client-key'],
    ['tls.existingSecret', { tls: { existingSecret: 'given' } }, 'ca.crt, tls.crt, tls.key'],
    ['blobs.s3.existingSecret', { blobs: s3 }, 'access-key, secret-key'],
    ['model.existingSecret of pools.serving', { model: hub, judge: { backend: 'free' } }, 'token'],
  ])('refuses a Secret of %s that lacks a key, and takes one that has every key', async (at, values, missing) => {
    const given = (kept: Record<string, string>) =>
      ({ apiVersion: 'v1', kind: 'Secret', metadata: { name: 'given' }, data: kept }) as unknown as RenderedObject;
    const words = await complaint([given({})], values);
    expect(words).toContain(`${at}: the Secret given lacks the keys `);
    expect(words).toContain(missing);
    const [, lacking = ''] = /lacks the keys (.*), which/.exec(words) ?? [];
    const every = Object.fromEntries(lacking.split(', ').map((key) => [key, 'YQ==']));
    expect(await complaint([given(every)], values)).toBe('');
    expect(await complaint([], values)).toBe('');
  });

  it('two renders without a cluster are equal, or refused', () => {
    expect(renderBlind({})).toMatch(/secrets\.generate: .*every render would make other secrets/);
    expect(renderBlind({ secrets: { generate: false } })).toMatch(/secrets\.existingSecret: .*README/);
    expect(renderBlind(own)).toContain('kind: StatefulSet');
    expect(renderBlind(own)).toBe(renderBlind(own));
  });

  // As Argo CD calls Helm: it lists the kinds of the cluster, and no lookup finds anything.
  const asArgo = [
    'v1/Secret',
    'apps/v1',
    'monitoring.coreos.com/v1',
    'keda.sh/v1alpha1',
    'argoproj.io/v1alpha1/Application',
  ];
  const listed = (kinds: readonly string[]) => kinds.flatMap((kind) => ['--api-versions', kind]);

  it.each(valuesFiles)('two renders of %s by Argo CD are equal, byte by byte, with a Secret that is there', (file) => {
    const rendered = () => renderBlind(own, ...listed(asArgo), '--values', join(chartFolder, file));
    expect(rendered()).toContain('kind: StatefulSet');
    expect(rendered()).toBe(rendered());
  });

  it('a render by Argo CD that would make secrets is refused in one line, and Helm itself is told how to', async () => {
    const words = renderBlind({}, ...listed(asArgo));
    expect(words.match(/^Error: .*/gm)).toHaveLength(1);
    expect(words).toMatch(/^Error: .*secrets\.generate: this cluster has Argo CD/);
    const always = { secrets: { generate: 'always' } };
    expect(renderBlind(always, ...listed(asArgo))).toContain('kind: Secret');
    const argo = {
      apiVersion: 'argoproj.io/v1alpha1',
      kind: 'Application',
      metadata: { name: 'other' },
    } as RenderedObject;
    expect(await complaint([argo], {})).toMatch(/this cluster has Argo CD/);
    expect(await complaint([argo, ...held()], {})).toBe('');
  });

  it('README’s recipe renders a Secret with every key', () => {
    const made = renderBlind({}, '--api-versions', 'v1/Secret', '--show-only', 'templates/secrets.yaml');
    for (const key of Object.keys(data)) expect(made).toContain(`  ${key}: `);
  });
});
