// Every address that the pods of a release are told: in their environments, in leases, in monitors and scalers. In: rendered
// objects. Out: who will call whom on which port, with names of Services resolved to the pods behind them.
import { leaseAddresses } from '@backtalk/kit';
import { z } from 'zod';
import { environmentOf, type PodFacts } from './environment.js';
import type { RenderedObject } from './helm.js';
import { containersOf, podsOf, type Container, type Pod } from './pods.js';
import { anywhere, type Flow } from './policies.js';

export const ownAddress = '10.1.2.3';
export const prometheus = 'namespace monitoring';
export const keda = 'namespace keda';

const anySecret: Readonly<Record<string, string>> = new Proxy(
  {},
  { get: (_, key) => (key === 'valkey-url' ? 'redis://:b@valkey.example.com:6379' : 'b'.repeat(48)) },
);
const facts: PodFacts = { podIp: ownAddress, podName: 'pod-0', secrets: new Proxy({}, { get: () => anySecret }) };

const service = z.looseObject({
  spec: z.looseObject({
    clusterIP: z.string().optional(),
    selector: z.record(z.string(), z.string()),
    ports: z.array(z.looseObject({ name: z.string(), port: z.number(), targetPort: z.string() })),
  }),
});
const monitor = z.looseObject({ spec: z.looseObject({ endpoints: z.array(z.looseObject({ port: z.string() })) }) });
const scaler = z.looseObject({
  spec: z.looseObject({ triggers: z.array(z.looseObject({ metadata: z.record(z.string(), z.string()) })) }),
});

const portsOfSchemes: ReadonlyMap<string, number> = new Map([
  ['http:', 80],
  ['https:', 443],
  ['nats:', 4222],
  ['redis:', 6379],
  ['tls:', 4222],
  ['rediss:', 6379],
]);

interface Told {
  readonly variable: string;
  readonly host: string;
  readonly port: number;
}

/** Addresses in one variable: URLs and host:port, with commas between. */
function addressesIn(variable: string, value: string): Told[] {
  return value
    .replaceAll(`[${ownAddress}]`, ownAddress)
    .split(',')
    .flatMap((part) => {
      const [, host, port] = /^\[?([\w.:-]+?)\]?:(\d{2,5})$/.exec(part) ?? [];
      if (host !== undefined) return [{ variable, host, port: Number(port) }];
      if (!/^[a-z]+:\/\//.test(part)) return [];
      const url = new URL(part);
      const number = url.port === '' ? (portsOfSchemes.get(url.protocol) ?? 0) : Number(url.port);
      return [{ variable, host: url.hostname.replaceAll(/[[\]]/g, ''), port: number }];
    });
}

/** A part that advertises itself is found under that host, health and all. */
function asLeased(told: Told, { BACKTALK_GRPC_ADVERTISED: advertised }: Readonly<Record<string, string>>): Told {
  if (told.variable !== 'BACKTALK_HEALTH_ADDRESS' || advertised === undefined) return told;
  const health = { host: told.host };
  const listening = { grpcAddress: health, healthAddress: health, grpcAdvertised: advertised.replaceAll(/[[\]]/g, '') };
  const { healthAddress } = leaseAddresses(listening, { grpc: told.port, health: told.port });
  return { ...told, host: healthAddress.slice(0, healthAddress.lastIndexOf(':')) };
}

/** Two things are reached without an address being given: Amazon's own S3, and the models' hub. */
function unnamedIn(environment: Readonly<Record<string, string>>): Told[] {
  const usesAmazon = environment['BACKTALK_BLOB_STORE'] === 's3' && environment['BACKTALK_S3_ENDPOINT'] === '';
  return [
    ...(usesAmazon ? [{ variable: 'BACKTALK_S3_ENDPOINT', host: 's3.amazonaws.com', port: 443 }] : []),
    ...('MODEL_HUB_ID' in environment ? [{ variable: 'MODEL_HUB_ID', host: 'huggingface.co', port: 443 }] : []),
  ];
}

export interface Teller {
  readonly pod: Pod;
  readonly container: Container;
  readonly environment: Readonly<Record<string, string>>;
  readonly told: readonly Told[];
}

export class Addresses {
  readonly tellers: readonly Teller[];

  constructor(private readonly objects: readonly RenderedObject[]) {
    this.tellers = podsOf(objects).flatMap((pod) =>
      containersOf(pod).map((container) => {
        const environment = environmentOf(container, facts);
        const named = Object.entries(environment).flatMap(([name, value]) => addressesIn(name, value));
        const told = [...named.map((one) => asLeased(one, environment)), ...unnamedIn(environment)].filter(
          ({ host }) => host !== '0.0.0.0' && host !== '::',
        );
        return { pod, container, environment, told };
      }),
    );
  }

  /** What pods open because their own environment names it. */
  told(): Flow[] {
    return this.tellers.flatMap(({ pod, told }) =>
      told.filter(({ host }) => host !== ownAddress).flatMap((address) => this.resolved(pod.component, address)),
    );
  }

  /** What Prometheus reads: ports of the metrics Service that monitors name, on every pod that has them. */
  scraped(): Flow[] {
    const names = this.of('ServiceMonitor').flatMap((object) => monitor.parse(object).spec.endpoints);
    const metrics = this.of('Service').find(({ metadata }) => metadata.name.endsWith('-metrics'));
    return names.flatMap(({ port }) => this.behind(prometheus, metrics, (name) => name === port));
  }

  /** What KEDA asks of the release itself. */
  scaled(): Flow[] {
    const triggers = this.of('ScaledObject').flatMap((object) => scaler.parse(object).spec.triggers);
    const hosts = triggers.flatMap(({ metadata }) => metadata['natsServerMonitoringEndpoint'] ?? []);
    return hosts
      .flatMap((host) => addressesIn('natsServerMonitoringEndpoint', host))
      .flatMap((address) => this.resolved(keda, address))
      .filter(({ to }) => to !== anywhere);
  }

  /** Components of the pods whose addresses a headless Service's name stands for. */
  podsBehind(name: string): string[] {
    const found = this.of('Service').find(({ metadata }) => metadata.name === name);
    const { clusterIP, selector } = found === undefined ? { clusterIP: '', selector: {} } : service.parse(found).spec;
    if (clusterIP !== 'None') return [];
    return podsOf(this.objects)
      .filter(({ labels }) => Object.entries(selector).every(([key, value]) => labels[key] === value))
      .map(({ component }) => component);
  }

  private of(kind: string): RenderedObject[] {
    return this.objects.filter((object) => object.kind === kind);
  }

  private resolved(from: string, { host, port }: Told): Flow[] {
    // A pod of a StatefulSet is named below its headless Service; other namespaces name ours with it.
    const names = host.split('.').slice(0, 2);
    const found = this.of('Service').find(({ metadata }) => names.includes(metadata.name));
    return found === undefined
      ? [{ from, to: anywhere, port }]
      : this.behind(from, found, (_, number) => number === port);
  }

  /** The pods behind a Service, on the container ports of those of its ports that are wanted. */
  private behind(
    from: string,
    object: RenderedObject | undefined,
    wanted: (name: string, port: number) => boolean,
  ): Flow[] {
    const { selector, ports } = service.parse(object).spec;
    const targets = ports.filter(({ name, port }) => wanted(name, port)).map(({ targetPort }) => targetPort);
    return podsOf(this.objects)
      .filter(({ labels }) => Object.entries(selector).every(([key, value]) => labels[key] === value))
      .flatMap((pod) =>
        containersOf(pod)
          .flatMap((one) => one.ports)
          .filter(({ name }) => targets.includes(name))
          .map(({ containerPort }) => ({ from, to: pod.component, port: containerPort })),
      );
  }
}
