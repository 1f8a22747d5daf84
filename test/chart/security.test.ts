// What holds for every pod of every values file: the restricted standard, no secret in the open, no image that moves.
import { callPairs, calls, tokenVariable } from '@backtalk/kit';
import { describe, expect, it } from 'vitest';
import { z } from 'zod';
import { render, renderAgain, valuesFiles, type RenderedObject } from './helm.js';
import { containersOf, podsOf, type Container } from './pods.js';

const secretData = z.looseObject({ data: z.record(z.string(), z.string()) });

function generatedSecrets(objects: readonly RenderedObject[]): string[] {
  return objects
    .filter(({ kind }) => kind === 'Secret')
    .flatMap((object) => Object.values(secretData.parse(object).data))
    .map((value) => Buffer.from(value, 'base64').toString());
}

function everyContainer(objects: readonly RenderedObject[]): (readonly [string, Container])[] {
  return podsOf(objects).flatMap((pod) => containersOf(pod).map((one) => [`${pod.name} ${one.name}`, one] as const));
}

/** Containers that read a key of a Secret: name, component of the pod, and `VARIABLE@container`. */
function holdersOf(objects: readonly RenderedObject[], key: string): (readonly [string, string, string])[] {
  return podsOf(objects).flatMap((pod) =>
    containersOf(pod).flatMap((one) =>
      one.env
        .filter(({ valueFrom }) => valueFrom?.secretKeyRef?.key === key)
        .map(({ name }) => [one.name, pod.component, `${name}@${one.name}`] as const),
    ),
  );
}

describe.each(valuesFiles)('with %s', (file) => {
  const objects = render({}, [file]);

  it('pods meet the restricted standard', () => {
    for (const { spec, name } of podsOf(objects)) {
      expect(spec.securityContext, name).toMatchObject({
        runAsNonRoot: true,
        seccompProfile: { type: 'RuntimeDefault' },
      });
      expect(spec.securityContext.runAsUser).toBeGreaterThan(0);
      expect(spec.automountServiceAccountToken).toBe(false);
      for (const field of ['hostNetwork', 'hostPID', 'hostIPC']) expect(spec).not.toHaveProperty(field);
      for (const volume of spec.volumes) expect(volume).not.toHaveProperty('hostPath');
    }
    for (const [name, { securityContext }] of everyContainer(objects)) {
      expect(securityContext, name).toMatchObject({ allowPrivilegeEscalation: false, capabilities: { drop: ['ALL'] } });
      expect(securityContext).not.toHaveProperty('privileged');
    }
  });

  it('images have a tag that stays, or a digest', () => {
    for (const [name, { image }] of everyContainer(objects)) {
      expect(image, name).toMatch(/(:[\w.-]+|@sha256:[0-9a-f]{64})$/);
      expect(image, name).not.toMatch(/:latest$/);
    }
  });

  it('no secret stands in a command, a plain variable or a ConfigMap', () => {
    const secrets = generatedSecrets(objects);
    const open = JSON.stringify(objects.filter(({ kind }) => kind !== 'Secret'));
    for (const secret of secrets) expect(open.includes(secret)).toBe(false);
    for (const [name, { env }] of everyContainer(objects)) {
      for (const { name: variable, value = '' } of env) {
        if (!/PASSWORD|SECRET|TOKEN$|_KEY$/.test(variable)) continue;
        expect(value, `${name} ${variable}`).toBe('');
      }
    }
  });

  it('memory has a limit everywhere, and GPUs stand in limits only', () => {
    for (const [name, { resources }] of everyContainer(objects)) {
      expect(resources.limits, name).toHaveProperty('memory');
      expect(resources.requests, name).toHaveProperty('cpu');
      expect(Object.keys(resources.requests).filter((resource) => resource.includes('/'))).toEqual([]);
    }
  });

  it('long-running containers that serve others have three probes that differ', () => {
    for (const pod of podsOf(objects)) {
      if (!['Deployment', 'StatefulSet'].includes(pod.object.kind) || pod.component === 'commands') continue;
      for (const { startupProbe, livenessProbe, readinessProbe } of pod.spec.containers) {
        const probes = [startupProbe, livenessProbe, readinessProbe].map((probe) => JSON.stringify(probe ?? null));
        expect(new Set(probes).size, pod.name).toBe(3);
        expect(probes, pod.name).not.toContain('null');
      }
    }
  });

  it('volumes need no class that many nodes write to', () => {
    expect(JSON.stringify(objects)).not.toContain('ReadWriteMany');
  });

  /** Where the judge asks engines that tell two keys apart, or engines of its own. */
  const isApart = podsOf(objects).some(
    (pod) =>
      pod.component === 'engine-judge' ||
      containersOf(pod).some(({ env }) => env.some(({ name }) => name === 'BACKTALK_ENGINE_JUDGE_KEY')),
  );

  it('the engines’ key is only with those that call engines, and with judges where the engines they share know one key', () => {
    const holders = holdersOf(objects, 'engine-key').map(([name]) => name);
    const allowed = ['engine', 'gateway', 'loader', 'publisher', 'trainer', ...(isApart ? [] : ['judge'])];
    expect(holders.filter((name) => !allowed.includes(name))).toEqual([]);
    const builtin = holdersOf(objects, 'engine-key').some(
      ([, , variable]) => variable === 'BACKTALK_ENGINE_KEY@engine',
    );
    if (builtin) expect(isApart).toBe(true);
  });

  it('the judges’ key is with them and the engines that they ask, and loads adapters on no serving engine', () => {
    const holders = holdersOf(objects, 'judge-engine-key');
    const variables = podsOf(objects).flatMap((pod) => containersOf(pod).flatMap(({ env }) => env));
    const reads = variables.some(({ name, value }) => name === 'BACKTALK_JUDGE_BACKEND' && value === 'free');
    const hasOwn = podsOf(objects).some(({ component }) => component === 'engine-judge');
    const asking = ['judge', ...(reads && hasOwn ? ['trainer'] : [])];
    expect(new Set(holders.map(([name]) => name))).toEqual(new Set(isApart ? ['engine', ...asking] : []));
    const serving = holders.filter(([, component]) => component === 'engine-serving');
    expect(serving.filter(([, , variable]) => variable !== 'BACKTALK_ENGINE_JUDGE_KEY@engine')).toEqual([]);
  });

  it('the broker’s admin is only with the broker and the Job that makes streams', () => {
    const holders = podsOf(objects)
      .filter((pod) => JSON.stringify(pod.spec).includes('"nats-admin"'))
      .map(({ component }) => component);
    expect(holders.filter((component) => !['nats', 'streams'].includes(component))).toEqual([]);
  });

  it('the standard labels are on every object, and selectors hold nothing that changes with a version', () => {
    for (const { kind, metadata, ...rest } of objects) {
      const keys = Object.keys(metadata.labels);
      for (const label of ['name', 'instance', 'component', 'version', 'part-of', 'managed-by']) {
        expect(keys, `${kind} ${metadata.name}`).toContain(`app.kubernetes.io/${label}`);
      }
      const selectors = JSON.stringify(rest).match(/"(matchLabels|selector)":\{[^}]*\}/g) ?? [];
      for (const selector of selectors) expect(selector).not.toMatch(/version|helm\.sh\/chart/);
    }
  });
});

it('generated secrets are long, start with a letter, and differ from release to release', () => {
  const [first, second] = [generatedSecrets(render()), generatedSecrets(renderAgain())];
  const random = first.filter((value) => !value.startsWith('{'));
  expect(random.length).toBeGreaterThanOrEqual(13);
  for (const value of random) expect(value).toMatch(/^[a-z][A-Za-z0-9]{47}$/);
  expect(random.filter((value) => second.includes(value))).toEqual([]);
});

describe('certificates and tokens of the services', () => {
  const services = ['gateway', 'collector', 'judge', 'trainer', 'publisher', 'loader', 'training', 'commands'];
  const objects = render({ tls: { existingSecret: '123' } });
  const files = { CA: 'ca.crt', CERT: 'tls.crt', KEY: 'tls.key' };

  it('a pair of parts that call each other has a token of its own by reference, and no other part has it', () => {
    for (const pair of callPairs) {
      const { caller, callee } = calls[pair];
      const key = `call-${caller}-${callee}`;
      const token = { name: tokenVariable(pair), valueFrom: { secretKeyRef: { name: 'loop-backtalk', key } } };
      const holders = everyContainer(render()).filter(([, one]) => JSON.stringify(one).includes(key));
      expect(new Set(holders.map(([, { name }]) => name))).toEqual(
        new Set([caller, callee].map((part) => ((part as string) === 'cli' ? 'commands' : part))),
      );
      for (const [, { env }] of holders) expect(env.filter(({ name }) => name === token.name)).toEqual([token]);
    }
  });

  it('every part that connects has the certificates of the Secret, where its variables say', () => {
    const holders = everyContainer(objects).filter(([, { env }]) => env.some(({ name }) => name === 'BACKTALK_TLS_CA'));
    expect(new Set(holders.map(([, { name }]) => name))).toEqual(new Set([...services, 'streams']));
    for (const [, { env, volumeMounts }] of holders) {
      for (const [name, file] of Object.entries(files)) {
        expect(env).toContainEqual({ name: `BACKTALK_TLS_${name}`, value: `/etc/backtalk/tls/${file}` });
      }
      expect(volumeMounts).toContainEqual({ name: 'tls', mountPath: '/etc/backtalk/tls', readOnly: true });
    }
    for (const { spec, component } of podsOf(objects).filter((pod) => pod.component !== 'test')) {
      const volumes = spec.volumes.filter(({ name }) => name === 'tls');
      expect(volumes, component).toEqual([{ name: 'tls', secret: { secretName: '123', defaultMode: 0o440 } }]);
    }
  });

  it('broker and Valkey of the release are called over TLS, and take no other', () => {
    const env = everyContainer(objects).flatMap(([, one]) => one.env);
    const urls = env.filter(({ name }) => /^BACKTALK_(NATS|VALKEY)_URL$/.test(name)).map(({ value = '' }) => value);
    expect(urls.length).toBeGreaterThan(8);
    for (const url of urls) expect(url).toMatch(/^(tls|rediss):/);
    const valkey = everyContainer(objects).find(([, { name }]) => name === 'valkey')?.[1];
    const args = valkey?.args.join(' ');
    expect(args).toContain('--port 0 --tls-port 6379 --tls-auth-clients yes --tls-cert-file /etc/backtalk/tls/tls.crt');
  });

  it('pods have no certificates where the values name no Secret', () => {
    expect(JSON.stringify(podsOf(render()).map(({ spec }) => spec))).not.toContain('tls');
  });
});
