// Which port each part of one machine listens on, all counted from the endpoint's; and whether they are free.
import { once } from 'node:events';
import { createServer } from 'node:net';

import { deployErrors } from './errors.js';

export interface Ports {
  readonly endpoint: number;
  readonly health: Readonly<
    Record<'gateway' | 'collector' | 'judge' | 'trainer' | 'publisher' | 'loader' | 'trainingWorker', number>
  >;
  readonly grpc: Readonly<Record<'gateway' | 'publisher' | 'loader' | 'trainingWorker', number>>;
  readonly engine: number;
  readonly nats: number;
  readonly natsMonitor: number;
  readonly valkey: number;
}

export function portsFrom(endpoint: number): Ports {
  const at = (offset: number) => endpoint + offset;
  return {
    endpoint,
    health: {
      gateway: at(10),
      collector: at(11),
      judge: at(12),
      trainer: at(13),
      publisher: at(14),
      loader: at(15),
      trainingWorker: at(16),
    },
    grpc: { gateway: at(20), publisher: at(24), loader: at(25), trainingWorker: at(26) },
    engine: at(30),
    nats: at(40),
    natsMonitor: at(41),
    valkey: at(42),
  };
}

/** Of the second engine and those after it on cards, each with a loader of its own. */
export function replicaPorts({ endpoint }: Pick<Ports, 'endpoint'>, at: number) {
  return { engine: endpoint + 30 + at, loaderHealth: endpoint + 50 + at, loaderGrpc: endpoint + 60 + at };
}

/** Of an engine that judges alone. */
export const judgeEnginePort = ({ endpoint }: Pick<Ports, 'endpoint'>) => endpoint + 38;

/** How far above the endpoint's port others go: without cards, and with them. */
export const highestOffset = { laptop: 42, gpu: 67 } as const;

/** The endpoint as clients on this machine write it. */
export function endpointUrl(host: string, { endpoint }: Pick<Ports, 'endpoint'>): string {
  const everywhere: Readonly<Record<string, string>> = { '0.0.0.0': '127.0.0.1', '::': '::1' };
  return `http://${addressOf(everywhere[host] ?? host, endpoint)}/v1`;
}

export function addressOf(host: string, port: number): string {
  return `${host.includes(':') ? `[${host}]` : host}:${String(port)}`;
}

/** Ports that browsers and `fetch` refuse to call, of those that a machine can have (the Fetch standard, "port blocking"). */
const refusedByClients = new Set([
  1719, 1720, 1723, 2049, 3659, 4045, 4190, 5060, 5061, 6000, 6566, 6665, 6666, 6667, 6668, 6669, 6679, 6697, 10_080,
]);

/** The first port of these that no browser and no `fetch` calls; undefined when each can be called. */
export function refusedPort({ endpoint, health, grpc, engine, nats, natsMonitor, valkey }: Ports): number | undefined {
  const all = [endpoint, ...Object.values(health), ...Object.values(grpc), engine, nats, natsMonitor, valkey];
  return all.find((port) => refusedByClients.has(port));
}

/**
 * Names and numbers of the ports that another program listens on, in ascending order.
 * @param engineIsHere an engine elsewhere may have the port that one here would take
 * @param others further ones that this start takes
 */
export async function busyPorts(
  ports: Ports,
  endpointHost: string,
  engineIsHere = true,
  others: readonly (readonly [string, number])[] = [],
): Promise<[string, number][]> {
  const named: [string, number][] = [
    ['the endpoint', ports.endpoint],
    ...Object.entries(ports.health).map(([name, port]): [string, number] => [`${name} metrics`, port]),
    ...Object.entries(ports.grpc).map(([name, port]): [string, number] => [`${name} gRPC`, port]),
    ...(engineIsHere ? ([['engine', ports.engine]] as [string, number][]) : []),
    ['nats', ports.nats],
    ['nats monitor', ports.natsMonitor],
    ['valkey', ports.valkey],
    ...others.map(([name, port]): [string, number] => [name, port]),
  ];
  const free = await Promise.all(
    named.map(async ([, port]) => {
      const probe = createServer().listen(port, port === ports.endpoint ? endpointHost : '127.0.0.1');
      try {
        await once(probe, 'listening');
        probe.close();
        await once(probe, 'close');
        return true;
      } catch (error) {
        refuseAddress(error, endpointHost, port);
        return false;
      }
    }),
  );
  return named.filter((_, at) => free[at] !== true);
}

/** Nothing can listen on an address of another machine. */
export async function refuseForeignHost(host: string): Promise<void> {
  const probe = createServer().listen(0, host);
  try {
    await once(probe, 'listening');
    probe.close();
    await once(probe, 'close');
  } catch (error) {
    refuseAddress(error, host, 0);
  }
}

/** Where nothing listens there, and nothing can. */
function refuseAddress(error: unknown, host: string, port: number): void {
  const code = error instanceof Error && 'code' in error ? error.code : undefined;
  if (code === 'EADDRINUSE') return;
  if (code === 'EACCES')
    throw deployErrors.badOption({ option: 'port', value: String(port), wanted: 'a port that this user may open' });
  throw deployErrors.badOption({ option: 'host', value: host, wanted: 'an address of this machine' });
}
