// Three real nats-servers in a cluster, with the installation's real configuration, so that streams can have three copies.
// In: how the configuration differs. Out: their addresses, until they are stopped.
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type Broker, connectBroker } from '../broker/connect.js';
import { natsConfig } from '../topology/nats-config.js';
import { type BrokerUser, brokerUsers } from '../topology/users.js';
import { freePort } from './free-port.js';
import { pythonEnvironment } from './python-environment.js';
import { ServerProcess } from './server-process.js';
import { silentLogger } from './silent-logger.js';
import { TemporaryDirectory } from './temporary-directory.js';
import { until } from './until.js';

export interface TestNatsCluster {
  readonly url: string;
  readonly monitorUrls: string;
  connect(user: BrokerUser): Promise<Broker>;
  stop(): Promise<void>;
}

const password = 'in a test only';
const members = [0, 1, 2] as const;

/** `adapt` changes the text of each server's configuration. */
export async function startNatsCluster(
  adapt: (config: string) => string = (config) => config,
): Promise<TestNatsCluster> {
  const directory = new TemporaryDirectory('nats-cluster');
  const ports = await Promise.all(members.map(async () => [await freePort(), await freePort(), await freePort()]));
  const port = (member: number, kind: 0 | 1 | 2) => ports[member]?.[kind] ?? 0;
  const urlOf = (scheme: string, kind: 0 | 1 | 2) =>
    members.map((member) => `${scheme}://127.0.0.1:${port(member, kind)}`).join(',');
  const passwords = Object.fromEntries(brokerUsers.map((user) => [user, password])) as Record<BrokerUser, string>;
  const servers = members.map((member) => {
    const file = directory.join(`${member}.conf`);
    const peers = members.filter((other) => other !== member).map((other) => `127.0.0.1:${port(other, 2)}`);
    const config = natsConfig({
      passwords,
      port: port(member, 0),
      monitorPort: port(member, 1),
      serverName: `nats-${member}`,
      storeDirectory: directory.join(`store-${member}`),
      cluster: { port: port(member, 2), peers },
    });
    writeFileSync(file, adapt(config), { mode: 0o600 });
    // Ready when it runs: a member alone has no leader yet.
    const program = join(pythonEnvironment(), 'bin', 'nats-server');
    return new ServerProcess({ program, arguments: ['-c', file], ready: () => Promise.resolve(true) });
  });
  await Promise.all(servers.map((server) => server.start()));
  const url = urlOf('nats', 0);
  const open: Broker[] = [];
  const connect = async (user: BrokerUser): Promise<Broker> => {
    const broker = await connectBroker({ url, user, password, name: `test ${user}`, logger: silentLogger });
    open.push(broker);
    return broker;
  };
  const admin = await connect('admin');
  await until(() => admin.jsm.getAccountInfo(), { timeoutMs: 90_000, what: 'a leader of the cluster' });
  return {
    url,
    monitorUrls: urlOf('http', 1),
    connect,
    stop: async () => {
      await Promise.all(open.map((broker) => broker.close()));
      await Promise.all(servers.map((server) => server.kill()));
      directory.remove();
    },
  };
}
