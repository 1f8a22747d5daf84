// The whole system for a test: the processes of `npm start` on ports and a folder of their own. Engine and training worker
// are the real ones or stand-ins that behave alike and are fast; everything else is always real.

import { mkdtempSync, readFileSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { PassThrough } from 'node:stream';
import { fileURLToPath } from 'node:url';
import {
  busyPorts,
  createTerminal,
  launch,
  openDataFolder,
  portsFrom,
  type DataFolder,
  type Ports,
  type ProcessSpec,
  type Supervisor,
} from '@backtalk/deploy';
import { connectBroker, createLogger, sha256Hex, type Broker, type BrokerUser } from '@backtalk/kit';
import { freePort, until } from '@backtalk/kit/testing';
import { replicaOf, standInFor } from './specs.js';

/** The compiled file stands in test/dist/loop, its source in test/loop: the root is where package.json names backtalk. */
export const root = findRoot(dirname(fileURLToPath(import.meta.url)));

export interface TestMachineOptions {
  readonly engine: 'stand-in' | 'builtin';
  readonly training: 'stand-in' | 'real';
  /** Further variables, by process name; `all` goes to every one. */
  readonly environment?: Readonly<Record<string, Readonly<Record<string, string>>>>;
  /** Milliseconds a token of the stand-in engine, and tokens of its answers. */
  readonly pace?: { readonly tokenMs: number; readonly answerTokens: number };
  /** Records of the keys file; without any, no key is asked for. */
  readonly keys?: readonly TestKey[];
  /** A folder from an earlier machine, to go on from its state. */
  readonly folder?: string;
}

export interface TestKey {
  readonly key: string;
  readonly tenant: string;
  readonly user: string;
  readonly limits?: { readonly concurrency?: number; readonly requestsPerMinute?: number };
}

export interface TestMachine {
  readonly ports: Ports;
  readonly folder: string;
  readonly data: DataFolder;
  /** `http://127.0.0.1:<port>` */
  readonly gateway: string;
  /** `http://127.0.0.1:<port>` of the first engine. */
  readonly engine: string;
  pid(name: string): number;
  kill(name: string, signal?: NodeJS.Signals): void;
  /** Resolves when the process serves, under another process id than `before` where one is given. */
  serves(name: string, before?: number): Promise<void>;
  /** Starts a second stand-in engine with a loader of its own; gives its URL. */
  addEngine(): Promise<string>;
  broker(user?: BrokerUser): Promise<Broker>;
  log(name: string): string;
  /** Everything that the processes wrote into their log files. */
  logs(): string;
  stop(options?: { readonly keepFolder?: boolean }): Promise<void>;
}

/** What the other parts must know of a stand-in engine: its adapters fit no real model, and it votes in words. */
const standInEnvironment: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  loader: { BACKTALK_MODEL: '' },
  judge: { BACKTALK_JUDGE_BACKEND: 'free' },
};
const readyWithinMs = 60_000;
const portsNeeded = 50;
const logTailCharacters = 3_000;

export async function startTestMachine(options: TestMachineOptions): Promise<TestMachine> {
  const folder = options.folder ?? mkdtempSync(join(tmpdir(), 'backtalk-test-'));
  const data = openDataFolder(folder);
  if (options.keys !== undefined) writeKeys(data, options.keys);
  const ports = await freePorts();
  const said = new PassThrough();
  said.resume();
  const specs = new Map<string, ProcessSpec>();
  const adapt = adaptTo(options);
  const { supervisor, secrets, up } = launch({
    ...{ root, data, ports, host: '127.0.0.1', dataCapBytes: 2e9 },
    terminal: createTerminal(said),
    adapt: (spec) => {
      const adapted = adapt(spec);
      specs.set(spec.name, adapted);
      return adapted;
    },
  });
  const killAll = () => {
    supervisor.killAll();
  };
  process.once('exit', killAll);
  const stop: TestMachine['stop'] = async ({ keepFolder = false } = {}) => {
    await supervisor.stop();
    process.off('exit', killAll);
    if (!keepFolder) rmSync(folder, { recursive: true, force: true });
  };
  try {
    await up();
  } catch (error) {
    await stop({ keepFolder: true });
    throw error;
  }
  return {
    ...{ ports, folder, data, stop },
    ...processesOf(supervisor, data),
    ...logsOf(data),
    gateway: `http://127.0.0.1:${String(ports.endpoint)}`,
    engine: `http://127.0.0.1:${String(ports.engine)}`,
    addEngine: async () => {
      const { url, engine, loader } = await replicaOf(specs, data);
      await supervisor.start([engine]);
      await supervisor.start([loader]);
      return url;
    },
    broker: (user = 'admin') =>
      connectBroker({
        url: `nats://127.0.0.1:${String(ports.nats)}`,
        user,
        password: secrets.passwords[user],
        name: 'test',
        logger: createLogger({ service: 'test', level: 'silent' }),
      }),
  };
}

function adaptTo({ engine, training, pace, environment = {} }: TestMachineOptions): (spec: ProcessSpec) => ProcessSpec {
  return (spec) => {
    const replaced =
      (spec.name === 'engine' && engine === 'stand-in') || (spec.name === 'training-worker' && training === 'stand-in');
    const suited = engine === 'stand-in' ? standInEnvironment[spec.name] : undefined;
    const env = { ...spec.env, BACKTALK_ACK_WAIT: '2s', ...suited, ...environment['all'], ...environment[spec.name] };
    return replaced ? standInFor(root, { ...spec, env }, pace) : { ...spec, env };
  };
}

function writeKeys(data: DataFolder, keys: readonly TestKey[]): void {
  const records = keys.map(({ key, ...grant }) => ({ ...grant, sha256: sha256Hex(Buffer.from(key)) }));
  writeFileSync(data.keys, JSON.stringify({ keys: records }));
}

/** A base port with enough free ports above it. */
async function freePorts(): Promise<Ports> {
  return until(
    async () => {
      const ports = portsFrom(Math.min(await freePort(), 65_535 - portsNeeded));
      return (await busyPorts(ports, '127.0.0.1')).length === 0 && ports;
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

function findRoot(from: string): string {
  const manifest = join(from, 'package.json');
  try {
    if (readFileSync(manifest, 'utf8').includes('"name": "backtalk"')) return from;
  } catch {
    // No manifest here: look one folder further up.
  }
  return findRoot(dirname(from));
}
