// A cluster whose addresses are IPv6: every process listens on all of them, and names its pod in brackets where a port
// follows. Services take the policy of families that the values give.
import { describe, expect, it } from 'vitest';
import { z } from 'zod';
import { environmentOf } from './environment.js';
import { render, type Values } from './helm.js';
import { containersOf, podsOf } from './pods.js';
import { facts } from './started-in.js';

const podIp = 'fd00::1';
const pool = (engine: string): Values => ({ engine, gpu: { count: 1 }, resources: { limits: { memory: '16Gi' } } });
const engines: Values = {
  model: { name: 'm', hub: 'a/b', revision: '0'.repeat(40) },
  judge: { backend: 'free' },
  pools: { serving: pool('vllm'), evaluation: { shares: '', ...pool('sglang') }, judge: { shares: '' } },
};
const objects = render({ ipFamily: 'IPv6', ...engines });
const containers = podsOf(objects).flatMap((pod) =>
  containersOf(pod).map((one) => ({
    name: `${pod.component} ${one.name}`,
    args: one.args,
    variables: Object.entries(environmentOf(one, { ...facts, podIp })),
  })),
);
const told = containers.flatMap(({ name, variables }) =>
  variables.map(([variable, value]) => [`${name} ${variable}`, value] as const),
);

describe('IPv6', () => {
  it('every process listens on all addresses, in brackets where a port follows', () => {
    const listening = told.filter(([name]) => /BACKTALK_(LISTEN|GRPC_ADDRESS|HEALTH_ADDRESS)$/.test(name));
    expect(listening.length).toBeGreaterThan(10);
    expect(listening.filter(([, address]) => !/^\[::\]:\d+$/.test(address))).toEqual([]);
    const hosts = told.filter(([name]) => name.endsWith('BACKTALK_ENGINE_HOST'));
    expect(hosts).toEqual([['engine-judge engine BACKTALK_ENGINE_HOST', '::']]);
  });

  it.each(['engine-serving engine', 'engine-evaluation engine'])('%s listens on ::, as a flag', (name) => {
    expect(containers.find((one) => one.name === name)?.args).toContain('--host=::');
  });

  it('broker and Valkey listen on ::', () => {
    const config = objects.find(({ kind, metadata }) => kind === 'ConfigMap' && metadata.name.endsWith('-nats'));
    expect(JSON.stringify(config)).toContain(String.raw`host: \"::\"`);
    expect(JSON.stringify(config)).toContain(String.raw`http: \"[::]:8222\"`);
    const { args = [] } = containers.find(({ name }) => name === 'valkey valkey') ?? {};
    expect(args.slice(0, 2)).toEqual(['--bind', '::']);
  });

  it('a pod names its own address in brackets, so that a port can follow', () => {
    const own = told.filter(([name, value]) => value.includes(podIp) && !name.endsWith('POD_IP'));
    expect(own.map(([name]) => name)).toEqual(
      expect.arrayContaining([
        'gateway gateway BACKTALK_GRPC_ADVERTISED',
        'publisher publisher BACKTALK_GRPC_ADVERTISED',
        'engine-serving loader BACKTALK_GRPC_ADVERTISED',
        'engine-serving loader BACKTALK_ENGINE_URL',
      ]),
    );
    expect(own.filter(([, value]) => !/^(http:\/\/)?\[fd00::1\]:\d+$/.test(value))).toEqual([]);
  });

  it('nothing listens on addresses of the other family', () => {
    expect(JSON.stringify(objects)).not.toContain('0.0.0.0');
  });
});

it('every Service has the policy of families that the values give, and by default the cluster’s', () => {
  const policy = z.looseObject({ spec: z.looseObject({ ipFamilyPolicy: z.string().optional() }) });
  const policies = (values: Values) =>
    render({ ...engines, ...values })
      .filter(({ kind }) => kind === 'Service')
      .map((object) => policy.parse(object).spec.ipFamilyPolicy);
  expect(policies({}).length).toBeGreaterThan(10);
  expect(new Set(policies({}))).toEqual(new Set([undefined]));
  expect(new Set(policies({ ipFamilyPolicy: 'PreferDualStack' }))).toEqual(new Set(['PreferDualStack']));
});
