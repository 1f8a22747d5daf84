// Which port each part of one machine listens on, all counted from the endpoint's; and whether they are free.
import { createServer } from 'node:net';

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

/** The port's users by name, in ascending order of port. */
function namedPorts(ports: Ports): [string, number][] {
  return [
    ['the endpoint', ports.endpoint],
    ...Object.entries(ports.health).map(([name, port]): [string, number] => [`${name} metrics`, port]),
    ...Object.entries(ports.grpc).map(([name, port]): [string, number] => [`${name} gRPC`, port]),
    ['engine', ports.engine],
    ['nats', ports.nats],
    ['nats monitor', ports.natsMonitor],
    ['valkey', ports.valkey],
  ];
}

function isFree(port: number, host: string): Promise<boolean> {
  return new Promise((resolve) => {
    const probe = createServer();
    probe.once('error', () => {
      resolve(false);
    });
    probe.listen(port, host, () => {
      probe.close(() => {
        resolve(true);
      });
    });
  });
}

/** Names and numbers of the ports that somebody else listens on. */
export async function busyPorts(ports: Ports, endpointHost: string): Promise<[string, number][]> {
  const checked = await Promise.all(
    namedPorts(ports).map(async ([name, port]) => ({
      entry: [name, port] as [string, number],
      free: await isFree(port, port === ports.endpoint ? endpointHost : '127.0.0.1'),
    })),
  );
  return checked.filter(({ free }) => !free).map(({ entry }) => entry);
}
