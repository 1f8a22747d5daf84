// A real nats-server with the installation's real configuration: one user per service with its real permissions.
// In: bounds of the streams. Out: a broker on a random port that keeps its store over kills and restarts.
import { randomBytes } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { connect } from 'nats';
import { type Broker, connectBroker } from '../broker/connect.js';
import { ensureStreams, type StreamOptions } from '../broker/streams.js';
import { type TlsFiles, wireSecurity } from '../config/wire-security.js';
import type { Logger } from '../telemetry/logger.js';
import { natsConfig } from '../topology/nats-config.js';
import { adminUser, type BrokerUser } from '../topology/users.js';
import type { CertificatePaths } from './certificates.js';
import { freePort } from './free-port.js';
import { pythonEnvironment } from './python-environment.js';
import { ServerProcess } from './server-process.js';
import { silentLogger } from './silent-logger.js';
import { TemporaryDirectory } from './temporary-directory.js';
import { until } from './until.js';

export interface StartNatsOptions {
  /** False: the server starts without streams and buckets. */
  readonly streams?: StreamOptions | false;
  /** Suffixes of durable consumers that tests use beside `backtalk`. */
  readonly durableSuffixes?: readonly string[];
  /** Paths of the files with which it, and its clients, must prove who they are. */
  readonly certificates?: CertificatePaths;
}

export interface Credentials {
  readonly url: string;
  readonly user: BrokerUser;
  readonly password: string;
}

export interface TestNats {
  readonly url: string;
  readonly port: number;
  readonly monitorUrl: string;
  readonly storeDirectory: string;
  credentials(user: BrokerUser): Credentials;
  /** A connection of that user, closed when the server is stopped. */
  connect(user: BrokerUser, logger?: Logger): Promise<Broker>;
  /** SIGKILL; store and port stay for `restart`. */
  kill(): Promise<void>;
  /** Resolves when the connections made by `connect` are up again. */
  restart(): Promise<void>;
  pause(): void;
  resume(): void;
  /** The end: connections are closed, the store is removed. */
  stop(): Promise<void>;
}

/** As on a laptop, where a secret stands there. */
const monitorPath = 'monitor-of-a-test';

export async function startNats(options: StartNatsOptions = {}): Promise<TestNats> {
  const directory = new TemporaryDirectory('nats');
  const [port, monitorPort] = await Promise.all([freePort(), freePort()]);
  const passwords = makePasswords();
  const config = natsConfig({
    passwords,
    port,
    monitorPort,
    monitorPath,
    storeDirectory: directory.join('store'),
    durableSuffixes: options.durableSuffixes ?? ['backtalk'],
  });
  const { certificates } = options;
  writeFileSync(directory.join('nats.conf'), config + tlsBlock(certificates), { mode: 0o600 });
  const url = `${certificates === undefined ? 'nats' : 'tls'}://127.0.0.1:${port}`;
  const tls = certificates && wireSecurity(certificates).tls;
  const credentials = (user: BrokerUser): Credentials => ({ url, user, password: passwords[user] });
  const server = new ServerProcess({
    program: join(pythonEnvironment(), 'bin', 'nats-server'),
    arguments: ['-c', directory.join('nats.conf')],
    ready: () => answers(credentials(adminUser), tls),
  });
  await server.start();
  const open = new Set<Broker>();
  const test: TestNats = {
    url,
    port,
    monitorUrl: `http://127.0.0.1:${monitorPort}/${monitorPath}`,
    storeDirectory: directory.join('store'),
    credentials,
    connect: async (user, logger = silentLogger) => {
      const broker = await connectBroker({
        ...credentials(user),
        name: `test ${user}`,
        logger,
        ...(tls === undefined ? {} : { tls }),
      });
      open.add(broker);
      return broker;
    },
    kill: () => server.kill(),
    restart: async () => {
      await server.kill();
      await server.start();
      const back = () => [...open].every((broker) => broker.nc.isClosed() || broker.status() === 'up');
      await until(back, { what: 'The return of connections' });
    },
    pause: () => {
      server.pause();
    },
    resume: () => {
      server.resume();
    },
    stop: async () => {
      await Promise.all([...open].map((broker) => broker.close()));
      await server.kill();
      directory.remove();
    },
  };
  if (options.streams !== false) await makeStreams(test, options.streams);
  return test;
}

async function makeStreams(test: TestNats, options: StreamOptions | undefined): Promise<void> {
  const admin = await test.connect(adminUser);
  await ensureStreams(admin, { turnsBytesMax: 256 * 1024 * 1024, ...options });
}

/** As an operator adds it: connections in clear, and those without a certificate of the authority, are refused. */
function tlsBlock(certificates: CertificatePaths | undefined): string {
  if (certificates === undefined) return '';
  const { tlsCa, tlsCert, tlsKey } = certificates;
  const [ca, cert, key] = [tlsCa, tlsCert, tlsKey].map((path) => JSON.stringify(path));
  return `tls {\n  ca_file: ${ca}\n  cert_file: ${cert}\n  key_file: ${key}\n  verify: true\n}\n`;
}

/** Ready means that JetStream answers, not only that the port is open. */
async function answers({ url, user, password }: Credentials, tls: TlsFiles | undefined): Promise<boolean> {
  const nc = await connect({
    servers: url,
    user,
    pass: password,
    inboxPrefix: `_INBOX_${user}`,
    timeout: 1_000,
    reconnect: false,
    ...(tls && { tls: { ca: tls.ca.toString(), cert: tls.cert.toString(), key: tls.key.toString() } }),
  });
  try {
    await nc.request('$JS.API.INFO', '', { timeout: 1_000 });
    return true;
  } finally {
    await nc.close();
  }
}

function makePasswords(): Record<BrokerUser, string> {
  const password = () => randomBytes(12).toString('hex');
  return {
    admin: password(),
    gateway: password(),
    collector: password(),
    judge: password(),
    trainer: password(),
    publisher: password(),
    loader: password(),
    cli: password(),
  };
}
