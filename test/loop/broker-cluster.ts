// Two brokers beside the one of a test's machine, so that its streams have three copies and a leader that can be killed.
// In: the machine's ports, folder and passwords. Out: how the machine's own broker differs, and the three by name.
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { loadSecrets, type DataFolder, type Ports, type ProcessSpec } from '@backtalk/deploy';
import { natsConfig, type Broker } from '@backtalk/kit';
import { pythonEnvironment, ServerProcess } from '@backtalk/kit/testing';

export interface BrokerCluster {
  /** Of all three, as a client takes them. */
  readonly url: string;
  /** The machine's own broker, as a member. */
  adapt(spec: ProcessSpec): ProcessSpec;
  /** Kills with SIGKILL; gives the call that starts it again. The machine's own broker, `nats-1`, is not ours to kill. */
  kill(name: string): Promise<() => Promise<void>>;
  stop(): Promise<void>;
}

export const ownBroker = 'nats-1';

/** Between those of the machine itself: of clients and of the cluster, by member. */
const clientPorts = [40, 35, 36] as const;
const clusterPorts = [37, 38, 39] as const;

export async function startPeers(data: DataFolder, ports: Ports): Promise<BrokerCluster> {
  const at = (offset = 0) => ports.endpoint + offset;
  const { passwords, natsMonitor: monitorPath } = loadSecrets(data.path);
  const fileOf = (member: number) => {
    const file = join(data.path, `nats-${String(member + 1)}.conf`);
    const peers = clusterPorts
      .filter((_, other) => other !== member)
      .map((offset) => `127.0.0.1:${String(at(offset))}`);
    const config = natsConfig({
      passwords,
      port: at(clientPorts[member]),
      serverName: `nats-${String(member + 1)}`,
      storeDirectory: join(data.path, `nats-${String(member + 1)}`),
      cluster: { port: at(clusterPorts[member]), peers },
      ...(member === 0 ? { monitorPort: ports.natsMonitor, monitorPath } : {}),
    });
    writeFileSync(file, config, { mode: 0o600 });
    return file;
  };
  const program = join(pythonEnvironment(), 'bin', 'nats-server');
  // Ready when it runs: a member alone has no leader yet.
  const peer = (member: number) =>
    new ServerProcess({ program, arguments: ['-c', fileOf(member)], ready: () => Promise.resolve(true) });
  const peers = new Map([
    ['nats-2', peer(1)],
    ['nats-3', peer(2)],
  ]);
  for (const server of peers.values()) await server.start();
  return {
    url: clientPorts.map((offset) => `nats://127.0.0.1:${String(at(offset))}`).join(','),
    adapt: (spec) => (spec.name === 'nats' ? { ...spec, args: ['--config', fileOf(0)] } : spec),
    kill: async (name) => {
      const server = peers.get(name);
      if (server === undefined) throw new RangeError(`${name} is no broker of this test.`);
      await server.kill();
      return () => server.start();
    },
    stop: async () => {
      for (const server of peers.values()) await server.kill();
    },
  };
}

/** Name of the member that takes a stream's messages now; undefined while there is none. */
export async function leaderOf(broker: Broker, stream: string): Promise<string | undefined> {
  const { cluster } = await broker.jsm.streams.info(stream);
  return cluster?.leader;
}
