// NetworkPolicies let through what pods are told to call, and nothing else: every address that stands in an environment, a
// lease, a monitor or a scaler is open at both ends, and every open port is called by somebody.
import { describe, expect, it } from 'vitest';
import { Addresses, keda, prometheus } from './addresses.js';
import { render, release, valuesFiles, type Values } from './helm.js';
import { leasedFlows, leasesWatched } from './leases.js';
import { anywhere, NetworkPolicies, wordsOf, type Flow } from './policies.js';

/** What is open though no address of the release asks for it. */
const reasons: readonly (readonly [string, (flow: Flow) => boolean])[] = [
  ['names are resolved', ({ to, port }) => to === 'namespace kube-system' && port === 53],
  ['clients call the endpoint', ({ to, port }) => to === 'gateway' && port === 30_000],
];

function hasReason(flow: Flow): boolean {
  return reasons.some(([, holds]) => holds(flow));
}

function flowsOf(values: Values, file: string) {
  const objects = render(values, [file]);
  const addresses = new Addresses(objects);
  const used = [...addresses.told(), ...leasedFlows(addresses.tellers), ...addresses.scraped(), ...addresses.scaled()];
  return { addresses, used, policies: new NetworkPolicies(objects) };
}

function wordsOfAll(flows: readonly Flow[]): Set<string> {
  return new Set(flows.map(wordsOf));
}

const outside: readonly string[] = [anywhere, prometheus, keda];

const variants: readonly (readonly [string, Values])[] = [
  ...valuesFiles.filter((file) => !file.includes('no-crds')).map((file) => [file, {}] as const),
  ['ci/default.yaml', { blobs: { store: 's3', s3: { bucket: 'b' } } }],
  ['ci/default.yaml', { blobs: { store: 's3', s3: { bucket: 'b', endpoint: 'http://minio.minio:9000' } } }],
  [
    'ci/external-dependencies.yaml',
    {
      nats: {
        external: { url: 'nats://a.example.com:4222,nats://b.example.com:5222', monitorUrl: 'https://m.example.com' },
      },
    },
  ],
  ['ci/default.yaml', { tls: { existingSecret: 'tls' }, ipFamily: 'IPv6' }],
  ['ci/default.yaml', { commands: { enabled: false } }],
  ['ci/default.yaml', { tracing: { endpoint: 'https://otlp.example.com' } }],
  ['ci/one-gpu.yaml', { model: { claim: 'weights', path: '/models/b' } }],
];

describe.each(variants.map(([file, values]) => [`${file} ${JSON.stringify(values)}`, file, values] as const))(
  'with %s',
  (_, file, values) => {
    const { addresses, used, policies } = flowsOf(values, file);
    const [egress, ingress] = [wordsOfAll(policies.egress()), wordsOfAll(policies.ingress())];

    it('every pod is refused what its policies do not name', () => {
      expect(policies.open()).toEqual([]);
    });

    it('leased engines may be in the pods of the release that have loaders, and nowhere else', () => {
      const leased = addresses.tellers.filter(({ environment }) => 'BACKTALK_ENGINE_URL' in environment);
      const components = new Set(
        leased.filter(({ container }) => container.name === 'loader').map(({ pod }) => pod.component),
      );
      const wanted = ['collector', 'gateway', 'judge', 'loader', 'publisher', 'trainer'].filter((name) =>
        leasesWatched(name).includes('loader'),
      );
      const readers = addresses.tellers.filter(({ environment }) => 'BACKTALK_ENGINE_HOSTS' in environment);
      expect(readers.map(({ container }) => container.name).sort()).toEqual(wanted);
      for (const { environment } of readers) {
        const hosts = (environment['BACKTALK_ENGINE_HOSTS'] ?? '').split(',');
        expect(new Set(hosts.flatMap((host) => addresses.podsBehind(host)))).toEqual(components);
        expect(hosts.filter((host) => addresses.podsBehind(host).length === 0)).toEqual([]);
      }
    });

    it('every address that a pod knows is understood here', () => {
      const unread = addresses.tellers.flatMap(({ container, environment, told }) =>
        Object.entries(environment)
          .filter(
            // Names that leases are compared with: nothing is sent to them for it.
            ([name, value]) =>
              name !== 'BACKTALK_ENGINE_HOSTS' &&
              value.includes(`${release}-backtalk-`) &&
              !told.some((one) => one.variable === name),
          )
          .map(([name, value]) => `${container.name} ${name}=${value}`),
      );
      expect(unread).toEqual([]);
      expect(used.filter(({ from, port }) => from === 'nobody' || port === 0)).toEqual([]);
    });

    it('every address that a pod is told is open at its own end and at the other', () => {
      const fromInside = used.filter(({ from }) => !outside.includes(from));
      const toInside = used.filter(({ to }) => !outside.includes(to));
      expect(fromInside.length).toBeGreaterThan(10);
      expect([...wordsOfAll(fromInside)].filter((words) => !egress.has(words))).toEqual([]);
      expect([...wordsOfAll(toInside)].filter((words) => !ingress.has(words))).toEqual([]);
    });

    it('every open port is called by somebody', () => {
      const all = wordsOfAll(used);
      const open = [...policies.egress(), ...policies.ingress()].filter((flow) => !hasReason(flow));
      expect([...wordsOfAll(open)].filter((words) => !all.has(words))).toEqual([]);
    });
  },
);

it('leases are read by the services that are known here to read them', () => {
  const watched = Object.fromEntries(
    ['gateway', 'collector', 'judge', 'trainer', 'publisher', 'loader', 'cli'].map((name) => [
      name,
      leasesWatched(name),
    ]),
  );
  expect(watched).toEqual({
    gateway: ['loader'],
    collector: [],
    judge: ['loader'],
    trainer: ['loader'],
    publisher: ['gateway', 'loader'],
    loader: [],
    cli: ['*', 'loader', 'publisher'],
  });
});

it('names are resolved on the ports that DNS pods have, and further rules are every pod’s', () => {
  const proxy = { ports: [{ port: 3128 }], to: [{ namespaceSelector: { matchLabels: { name: 'proxies' } } }] };
  const objects = render({ networkPolicy: { dnsPorts: [5353], extraEgress: [proxy] } });
  const flows = wordsOfAll(new NetworkPolicies(objects).egress());
  for (const component of ['gateway', 'engine-serving', 'training', 'streams', 'test']) {
    expect(flows).toContain(`${component} → namespace kube-system:5353`);
    expect(flows).not.toContain(`${component} → namespace kube-system:53`);
    expect(flows).toContain(`${component} → namespace proxies:3128`);
  }
});

it('engines and judges elsewhere are reached on their ports, by those who ask them', () => {
  const judged = { env: { BACKTALK_JUDGE_URL: 'https://models.example/v1' } };
  const objects = render({ engineHosts: ['vllm.gpus.svc'], judge: judged });
  const flows = wordsOfAll(new NetworkPolicies(objects).egress());
  for (const component of ['gateway', 'judge', 'trainer', 'publisher'])
    expect(flows, component).toContain(`${component} → ${anywhere}:30030`);
  expect(flows).toContain(`publisher → ${anywhere}:30025`);
  expect(flows).toContain(`judge → ${anywhere}:443`);
  expect(flows).not.toContain(`trainer → ${anywhere}:443`);
  expect(flows).not.toContain(`collector → ${anywhere}:30030`);
  const own = wordsOfAll(new NetworkPolicies(render()).egress());
  expect(own).not.toContain(`gateway → ${anywhere}:30030`);
});

it('no policies are made where the values say so', () => {
  expect(render({}, ['ci/no-crds.yaml']).filter(({ kind }) => kind === 'NetworkPolicy')).toEqual([]);
});
