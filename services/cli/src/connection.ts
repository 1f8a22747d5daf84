// Where the installation is: the folder of a running machine says it (connection.json, written by the start command), or
// the environment, for a cluster.
import { existsSync, readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import {
  blobSettings,
  connectBroker,
  createLogger,
  isBacktalkError,
  openBlobStore,
  readConfig,
  readConnectionFile,
  systemClock,
  wireSecurity,
  type BlobConfig,
  type BlobStore,
  type Broker,
  type ConnectionFile,
  type WireSecurity,
} from '@backtalk/kit';
import { clusterSettings } from './config.js';
import { cliErrors } from './errors.js';

/** What words of the command line say of the installation. */
export interface NamedInstallation {
  readonly data?: string | undefined;
  readonly policy?: string | undefined;
}

export interface Connection extends Omit<ConnectionFile, 'blobStore' | 'cliToPublisher'> {
  /** Of a cluster whose gateway reads its keys from there. */
  readonly keysSecret: string;
  readonly blobs: BlobConfig;
  /** How services know each other. */
  readonly wire: WireSecurity;
  /** The command line named the policy. */
  readonly isPolicyNamed?: boolean;
}

/** @param policy what the command is about, where it is not the installation's first */
export function findConnection(named: NamedInstallation, usualFolder: string): Connection {
  const found = installationAt(named.data, usualFolder);
  const policies = found.policies.length > 0 ? found.policies : [found.policy];
  const { policy = found.policy } = named;
  // A cluster does not say what it serves.
  if (found.policies.length > 0 && !policies.includes(policy))
    throw cliErrors.badArgument({ name: '--policy', value: policy, wanted: `one of ${policies.join(', ')}` });
  return {
    ...found,
    policy,
    policies: policies.includes(policy) ? policies : [policy],
    isPolicyNamed: named.policy !== undefined,
  };
}

/** A folder that is named outright wins; then a cluster that the environment names; then the usual folder. */
function installationAt(namedFolder: string | undefined, usualFolder: string): Connection {
  if (namedFolder === undefined) {
    const { engineUrl: engine, ...cluster } = readConfig(clusterSettings);
    // Health comes from leases there.
    if (cluster.natsUrl !== '')
      return {
        ...cluster,
        policies: [...cluster.policies],
        engine,
        health: {},
        blobs: cluster,
        wire: wireSecurity(cluster),
      };
  }
  const file = join(namedFolder === undefined ? folderHere(usualFolder) : resolve(namedFolder), 'connection.json');
  const { blobStore, cliToPublisher, ...found } = readConnectionFile(file) ?? notRunning(file);
  const { engineKeyFile: key } = found;
  const connection = { ...found, keysSecret: '', ...(key === undefined ? {} : { engineKey: keyIn(key) }) };
  const wire = { tokens: { cliToPublisher } };
  return { ...connection, wire, blobs: readConfig(blobSettings, { [blobSettings.blobStore.variable]: blobStore }) };
}

function notRunning(file: string): never {
  throw cliErrors.notRunning({ where: `${file} is not there` });
}

/** Of the checkout that this is part of, where commands are asked in a folder of it, or elsewhere, that has none. */
const ofCheckout = fileURLToPath(new URL('../../../.backtalk', import.meta.url));

function folderHere(usualFolder: string): string {
  const usual = resolve(usualFolder);
  const isThere = existsSync(join(usual, 'connection.json'));
  return isThere || usual !== resolve('.backtalk') || !existsSync(ofCheckout) ? usual : ofCheckout;
}

/** None where the file cannot be read: what asks the engine is then refused by it, and `doctor` says so. */
function keyIn(file: string): string {
  try {
    return readFileSync(file, 'utf8').trim();
  } catch {
    return '';
  }
}

/** Runs `use` with a connection to the broker, and closes it. */
export async function withBroker<T>(
  connection: Connection,
  use: (broker: Broker, blobs: BlobStore) => Promise<T>,
): Promise<T> {
  return withBrokerAlone(connection, async (broker) => use(broker, await openBlobStore(connection.blobs, broker)));
}

interface BrokerWaits {
  readonly connectTimeoutMs?: number;
  /** For a broker that goes away in the middle. */
  readonly awayMaxMs?: number;
  readonly signal?: AbortSignal;
}

/** A restart takes seconds. */
const awayMaxUsualMs = 30_000;

/** For commands that touch no blob. */
export async function withBrokerAlone<T>(
  connection: Pick<Connection, 'natsUrl' | 'natsUser' | 'natsPassword' | 'wire'>,
  use: (broker: Broker) => Promise<T>,
  { connectTimeoutMs = 3_000, awayMaxMs = awayMaxUsualMs, signal }: BrokerWaits = {},
): Promise<T> {
  const broker = await connectBroker({
    url: connection.natsUrl,
    user: connection.natsUser,
    password: connection.natsPassword,
    name: 'backtalk command',
    logger: createLogger({ service: 'cli', level: 'silent' }),
    connectTimeoutMs,
    ...(connection.wire.tls === undefined ? {} : { tls: connection.wire.tls }),
    ...(signal === undefined ? {} : { signal }),
  }).catch((error: unknown) => {
    if (isBacktalkError(error, 'broker_refused') || signal?.aborted === true) throw error;
    throw cliErrors.unreachable({ what: 'The broker', url: connection.natsUrl }, error);
  });
  const away = watchAway(broker, awayMaxMs);
  try {
    const gone = away.gone.then(() => {
      throw cliErrors.unreachable({ what: 'The broker', url: connection.natsUrl });
    });
    return await Promise.race([use(broker), gone]);
  } finally {
    away.stop();
    await broker.close();
  }
}

/** What reads the log waits for a broker that is away, without an end: a person does not. `gone` resolves after so long. */
function watchAway(broker: Broker, awayMaxMs: number): { readonly gone: Promise<void>; readonly stop: () => void } {
  let cancel = (): void => undefined;
  let off = (): void => undefined;
  const gone = new Promise<void>((resolve) => {
    off = broker.onStatus((status) => {
      cancel();
      if (status !== 'up') cancel = systemClock.timer(awayMaxMs, resolve);
    });
  });
  return {
    gone,
    stop: () => {
      off();
      cancel();
    },
  };
}
