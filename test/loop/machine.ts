// The whole system for a test: the processes of `npm start` on ports and a folder of their own. Engine and training worker
// are the real ones or stand-ins that behave alike and are fast; everything else is always real.
import { once } from 'node:events';
import { cpSync, mkdtempSync, readFileSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { createServer, type Server } from 'node:net';
import { tmpdir } from 'node:os';
import { basename, dirname, join } from 'node:path';
import { PassThrough } from 'node:stream';
import { fileURLToPath } from 'node:url';
import {
  busyPorts,
  createTerminal,
  launch,
  openDataFolder,
  portsFrom,
  refusedPort,
  valkeyUrl,
  type BaseModel,
  type DataFolder,
  type LaunchOptions,
  type Ports,
  type ProcessSpec,
  type Secrets,
  type Supervisor,
} from '@backtalk/deploy';
import {
  connectBroker,
  createLogger,
  readConfig,
  setting,
  sha256Hex,
  type Broker,
  type BrokerUser,
  type WireSecurity,
} from '@backtalk/kit';
import { until } from '@backtalk/kit/testing';
import { startPeers, type BrokerCluster } from './broker-cluster.js';
import { replicaOf, secondGatewayOf, standInFor } from './specs.js';

/** The compiled file stands in test/dist/loop, its source in test/loop: the root is where package.json names backtalk. */
export const root = findRoot(dirname(fileURLToPath(import.meta.url)));

export interface TestMachineOptions {
  readonly engine: 'stand-in' | 'builtin';
  readonly training: 'stand-in' | 'real';
  /** Further variables, by process name; `all` goes to every one. */
  readonly environment?: Readonly<Record<string, Readonly<Record<string, string>>>>;
  /** A base model in place of the laptop's. */
  readonly base?: BaseModel;
  /** What answers, and where steps compute, as a start chose them. */
  readonly chosen?: Partial<Pick<LaunchOptions, 'engine' | 'device' | 'quantization'>>;
  /** Names of the policies; the usual one when left out. */
  readonly policies?: readonly string[];
  /** Milliseconds a token of the stand-in engine, and tokens of its answers. */
  readonly pace?: { readonly tokenMs: number; readonly answerTokens: number };
  /** Records of the keys file; without any, no key is asked for. */
  readonly keys?: readonly TestKey[];
  /** A folder from an earlier machine, to go on from its state. */
  readonly folder?: string;
  /** Folder of a backup that the machine starts from. */
  readonly restore?: string;
  /** Three brokers with three copies of every stream; one without copies when left out. */
  readonly brokers?: 3;
  /** Changes a process before it starts, after all that the other options change. */
  readonly adapt?: (spec: ProcessSpec) => ProcessSpec;
}

export interface TestKey {
  readonly key: string;
  readonly tenant: string;
  readonly user: string;
  /** Names of the policies that it opens. */
  readonly policies?: readonly string[];
  readonly limits?: {
    readonly concurrency?: number;
    readonly requestsPerMinute?: number;
    readonly tokensPerMinute?: number;
    readonly captureBytesPerDay?: number;
  };
}

export interface TestMachine {
  readonly ports: Ports;
  readonly folder: string;
  readonly data: DataFolder;
  /** What its processes were started with, by name. */
  readonly specs: ReadonlyMap<string, ProcessSpec>;
  /** `http://127.0.0.1:<port>` */
  readonly gateway: string;
  /** `http://127.0.0.1:<port>` of the first engine. */
  readonly engine: string;
  /** With its password. */
  readonly valkey: string;
  /** What its services ask of each other. */
  readonly wire: WireSecurity;
  /** The other brokers, where there are three. */
  readonly cluster: BrokerCluster | undefined;
  pid(name: string): number;
  kill(name: string, signal?: NodeJS.Signals): void;
  /** Resolves when the process serves, under another process id than `before` where one is given. */
  serves(name: string, before?: number): Promise<void>;
  /** Starts a second engine, then a third, with a loader of its own, like the first one or as is said here; gives its URL. */
  addEngine(engine?: ProcessSpec): Promise<string>;
  /** Starts a second gateway, named `gateway-2`, like the first one but for these variables; gives its URL. */
  addGateway(environment?: Readonly<Record<string, string>>): Promise<string>;
  broker(user?: BrokerUser): Promise<Broker>;
  log(name: string): string;
  /** Everything that the processes wrote into their log files. */
  logs(): string;
  stop(options?: { readonly keepFolder?: boolean }): Promise<void>;
}

/** What the other parts must know of a stand-in engine: its adapters fit no real model, it votes in words, and knows few of them. */
const standInEnvironment: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  loader: { BACKTALK_MODEL_DIR: '' },
  judge: { BACKTALK_JUDGE_BACKEND: 'free', BACKTALK_JUDGE_VOTE_SHARE: '1', BACKTALK_JUDGE_PLANTED_SHARE: '0' },
};
/** A stand-in trains in no time: versions pass while a turn waits that would be fresh anywhere else. */
const standInTrainingEnvironment: typeof standInEnvironment = { judge: { BACKTALK_JUDGE_VERSIONS_BEHIND: '0' } };
const readyWithinMs = 60_000;
const portsOfRow = 50;
const portRows = { first: 10_000, rows: 200 };
const logTailCharacters = 3_000;

export async function startTestMachine(options: TestMachineOptions): Promise<TestMachine> {
  const folder = options.folder ?? mkdtempSync(join(tmpdir(), 'backtalk-test-'));
  const data = openDataFolder(folder);
  if (options.keys !== undefined) writeFileSync(data.keys, keysFileOf(options.keys));
  const { ports, guard } = await takeRow();
  const said = new PassThrough();
  said.resume();
  const specs = new Map<string, ProcessSpec>();
  const cluster = options.brokers === undefined ? undefined : await startPeers(data, ports);
  const adapt = adaptTo(options, ports, cluster);
  const { supervisor, secrets, up } = launch({
    root,
    data,
    ports,
    host: '127.0.0.1',
    dataCapBytes: 2e9,
    ...given(options),
    terminal: createTerminal(said),
    adapt: (spec) => {
      const adapted = adapt(spec);
      specs.set(spec.name, adapted);
      return adapted;
    },
  });
  const killAll = () => supervisor.killAll();
  process.once('exit', killAll);
  const stop: TestMachine['stop'] = async ({ keepFolder = false } = {}) => {
    await supervisor.stop();
    await cluster?.stop();
    guard.close();
    process.off('exit', killAll);
    keepLogs(data);
    if (!keepFolder) rmSync(folder, { recursive: true, force: true });
  };
  try {
    await up();
  } catch (error) {
    await stop({ keepFolder: true });
    throw error;
  }
  return {
    ports,
    folder,
    data,
    specs,
    stop,
    ...addressesOf(ports, secrets),
    wire: { tokens: secrets.callTokens },
    ...processesOf(supervisor, data),
    ...logsOf(data),
    cluster,
    addEngine: engineAdder(supervisor, specs, data, ports),
    addGateway: async (environment = {}) => {
      const { url, gateway } = secondGatewayOf(specs, data, ports);
      await supervisor.start([{ ...gateway, env: { ...gateway.env, ...environment } }]);
      return url;
    },
    broker: (user = 'admin') =>
      connectAs(user, cluster?.url ?? `nats://127.0.0.1:${String(ports.nats)}`, secrets.passwords),
  };
}

function engineAdder(
  supervisor: Supervisor,
  specs: ReadonlyMap<string, ProcessSpec>,
  data: DataFolder,
  ports: Ports,
): TestMachine['addEngine'] {
  let replicas = 0;
  return async (like) => {
    replicas += 1;
    const chosenSpecs = like === undefined ? specs : new Map(specs).set('engine', like);
    const { url, engine, loader } = replicaOf(chosenSpecs, data, ports, replicas === 1 ? 2 : 3);
    await supervisor.start([engine]);
    await supervisor.start([loader]);
    return url;
  };
}

function addressesOf(ports: Ports, secrets: Secrets): Pick<TestMachine, 'gateway' | 'engine' | 'valkey'> {
  return {
    gateway: `http://127.0.0.1:${String(ports.endpoint)}`,
    engine: `http://127.0.0.1:${String(ports.engine)}`,
    valkey: valkeyUrl(ports, secrets),
  };
}

/** What is left out where a test leaves it out. */
function given({ restore, policies, brokers, base, chosen }: TestMachineOptions) {
  return {
    ...chosen,
    ...(base === undefined ? {} : { base }),
    ...(restore === undefined ? {} : { restore }),
    ...(policies === undefined ? {} : { policies }),
    ...(brokers === undefined ? {} : { streamReplicas: brokers }),
  };
}

function connectAs(user: BrokerUser, url: string, passwords: Readonly<Record<BrokerUser, string>>): Promise<Broker> {
  const logger = createLogger({ service: 'test', level: 'silent' });
  return connectBroker({ url, user, password: passwords[user], name: 'test', logger });
}

function adaptTo(
  options: TestMachineOptions,
  ports: Ports,
  cluster: BrokerCluster | undefined,
): (spec: ProcessSpec) => ProcessSpec {
  const { engine, training, pace, environment = {}, adapt = (spec: ProcessSpec) => spec } = options;
  const brokers = cluster === undefined ? {} : { BACKTALK_NATS_URL: cluster.url };
  return (own) => {
    const spec = cluster?.adapt(own) ?? own;
    const replaced =
      (spec.name === 'engine' && engine === 'stand-in') || (spec.name === 'training-worker' && training === 'stand-in');
    const suited = engine === 'stand-in' ? standInEnvironment[spec.name] : undefined;
    const given: Record<string, string> = {
      ...spec.env,
      ...brokers,
      BACKTALK_ACK_WAIT: '2s',
      ...suited,
      ...(training === 'stand-in' ? standInTrainingEnvironment[spec.name] : undefined),
      ...environment['all'],
      ...environment[spec.name],
    };
    // Versions come of what people say in a test, unless it asks for more.
    const recipe = spec.name === 'trainer' ? { BACKTALK_RECIPE_SET: waitingFor(given['BACKTALK_RECIPE_SET']) } : {};
    const env = { ...given, ...recipe };
    return adapt(replaced ? standInFor(root, { ...spec, env }, ports, pace) : { ...spec, env });
  };
}

function waitingFor(set: string | undefined): string {
  return ['rehearsalSteps=0', ...(set === undefined || set === '' ? [] : [set])].join(',');
}

/** What stands in the keys file: hashes, and what each key may do. Tenants share the one policy because keys name it. */
export function keysFileOf(keys: readonly TestKey[]): string {
  return JSON.stringify({
    keys: keys.map(({ key, ...grant }) => ({ policies: ['backtalk'], ...grant, sha256: sha256Hex(Buffer.from(key)) })),
  });
}

interface Row {
  readonly ports: Ports;
  /** Listens on the last port while the machine is there: no test beside this one tries the others, not even while a process is gone. */
  readonly guard: Server;
}

/**
 * A base port with enough free ports above it, below those that the system gives to outgoing connections: a process that was
 * killed must find its port again.
 */
async function takeRow(): Promise<Row> {
  const { first, rows } = portRows;
  return until(
    async () => {
      const ports = portsFrom(first + portsOfRow * Math.floor(Math.random() * rows));
      if (refusedPort(ports) !== undefined) return false;
      const guard = createServer().listen(ports.endpoint + portsOfRow - 1, '127.0.0.1');
      await once(guard, 'listening');
      if ((await busyPorts(ports, '127.0.0.1')).length === 0) return { ports, guard: guard.unref() };
      guard.close();
      return false;
    },
    { what: 'A row of free ports' },
  );
}

function processesOf(supervisor: Supervisor, data: DataFolder): Pick<TestMachine, 'pid' | 'kill' | 'serves'> {
  const pid = (name: string) => supervisor.pid(name) ?? 0;
  return {
    pid,
    kill: (name, signal = 'SIGKILL') => process.kill(pid(name), signal),
    serves: async (name, before) => {
      const isThere = async () => pid(name) !== before && (await supervisor.serves(name));
      await until(isThere, { what: `${name} serves`, timeoutMs: readyWithinMs }).catch((error: unknown) => {
        // The folder is gone when somebody reads of the failure.
        process.stdout.write(`${name}: ${logsOf(data).log(name).slice(-logTailCharacters)}\n`);
        throw error;
      });
    },
  };
}

function logsOf(data: DataFolder): Pick<TestMachine, 'log' | 'logs'> {
  return {
    log: (name) => readFileSync(join(data.logs, `${name}.log`), 'utf8'),
    logs: () =>
      readdirSync(data.logs)
        .map((file) => readFileSync(join(data.logs, file), 'utf8'))
        .join('\n'),
  };
}

const settings = {
  logs: setting.string('BACKTALK_TEST_LOGS', {
    description: 'Folder that keeps the logs of every machine that a test stops; none are kept when it is empty.',
    default: '',
  }),
};

function keepLogs({ logs, path }: DataFolder): void {
  const kept = readConfig(settings).logs;
  if (kept !== '') cpSync(logs, join(kept, basename(path)), { recursive: true });
}

function findRoot(from: string): string {
  const manifest = join(from, 'package.json');
  try {
    if (readFileSync(manifest, 'utf8').includes('"name": "backtalk"')) return from;
  } catch {
    // No manifest here: look one folder further up.
  }
  return findRoot(dirname(from));
}
