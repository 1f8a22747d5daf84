// Starts the processes of one machine: servers, streams, then all parts at once. Takes where state lives and which ports;
// gives a supervisor that keeps them up. Tests replace single processes through `adapt`.
import { join } from 'node:path';
import {
  type BaseFiles,
  connectBroker,
  createLogger,
  ensureStreams,
  folderBlobStore,
  inheritedEnvironment,
  natsConfig,
  restoreBackup,
  storageRoom,
  type Broker,
  type Quantization,
} from '@backtalk/kit';
import type { BaseModel } from './base-model.js';
import type { ProcessSpec } from './child.js';
import { refuseOtherBase, writeConnection } from './connection.js';
import { writePrivate, type DataFolder } from './data-folder.js';
import { isElsewhere, type EngineChoice } from './engine-choice.js';
import { openTo } from './endpoint-key.js';
import { deployErrors } from './errors.js';
import type { JudgeModel } from './judge-model.js';
import type { BoxPlan } from './box-plan.js';
import { busyPorts, judgeEnginePort, replicaPorts, type Ports } from './ports.js';
import { ProcessRecord } from './process-record.js';
import { baseModel, policy, type Machine } from './machine.js';
import { machineProcesses } from './processes.js';
import { refuseOtherQuantization } from './quantization.js';
import { copyRestored, endRestore } from './restored-files.js';
import { loadSecrets, type Secrets } from './secrets.js';
import { Supervisor } from './supervisor.js';
import type { Terminal } from './terminal.js';
import type { TrainingDevice } from './training-device.js';

export interface LaunchOptions {
  readonly root: string;
  readonly data: DataFolder;
  readonly ports: Ports;
  readonly host: string;
  readonly dataCapBytes: number;
  readonly terminal: Terminal;
  /** Names of the policies that are served and trained; one of the usual name when left out. */
  readonly policies?: readonly string[];
  /** A base model that is not the laptop's. */
  readonly base?: BaseModel;
  /** Weights of the base model; left out, they are not compared with those that the data folder knows. */
  readonly baseFiles?: BaseFiles;
  /** What is read out of that model's answers. */
  readonly answers?: string;
  /** What answers; the built-in engine when left out. */
  readonly engine?: EngineChoice;
  /** What runs on which card, where vLLM serves on cards. */
  readonly box?: BoxPlan;
  /** Votes for each turn. */
  readonly votes?: number;
  /** Folder that staged versions are written to, in Hugging Face's layout. */
  readonly checkpoints?: string;
  /** Where steps compute; on the CPU when left out. */
  readonly device?: TrainingDevice;
  /** Folder of another model that teaches. */
  readonly teacher?: string;
  /** Of the base model's linear layers; none when left out. */
  readonly quantization?: Quantization;
  /** The model that judges; left out: what the environment names, or words and tools' fields. */
  readonly judge?: JudgeModel;
  /** Folder of a backup that a new data folder starts from. */
  readonly restore?: string;
  /** Opens the endpoint beside the keys that there are. */
  readonly clientKey?: string;
  /** Copies of every stream, where the broker is a cluster. */
  readonly streamReplicas?: number;
  /** Changes a process before it starts. */
  readonly adapt?: (spec: ProcessSpec) => ProcessSpec;
}

/** Folder of the model that the set-up makes. */
export const laptopModel = (root: string) => join(root, '.venv', 'models', baseModel);

export interface Launched {
  readonly supervisor: Supervisor;
  readonly secrets: Secrets;
  /** Starts everything; resolves when all of it serves. Once `stopping` says so, it rejects and writes nothing more. */
  up(stopping?: AbortSignal): Promise<void>;
}

/** Of the data folder's cap: the log of turns may take this much; weights and the rest share what is left. */
const turnsShare = 0.4;

export function launch(options: LaunchOptions): Launched {
  const { data, ports, host, terminal, policies = [policy], base, judge, engine, device, teacher } = options;
  const { quantization = 'none' } = options;
  const adapt = options.adapt ?? ((spec: ProcessSpec) => spec);
  if (options.restore !== undefined) copyRestored(options.restore, data);
  // After the copy's own keys: it joins them, as it does those of a folder that was used.
  if (options.clientKey !== undefined) openTo(data, options.clientKey);
  const secrets = loadSecrets(data.path);
  const supervisor = new Supervisor(data.logs, terminal, new ProcessRecord(data.processes));
  return {
    supervisor,
    secrets,
    up: async (stopping = new AbortController().signal) => {
      refuseOtherBase(data, base?.name, options.baseFiles);
      refuseOtherQuantization(data, quantization);
      const [busy] = await busyPorts(ports, host, !isElsewhere(engine), portsOnCards(ports, options.box));
      if (busy !== undefined) throw deployErrors.portBusy({ name: busy[0], port: busy[1], endpoint: ports.endpoint });
      const { nats: port, natsMonitor: monitorPort } = ports;
      const nats = natsConfig({
        port,
        monitorPort,
        monitorPath: secrets.natsMonitor,
        storeDirectory: data.nats,
        passwords: secrets.passwords,
        durableSuffixes: policies,
      });
      writePrivate(data.natsConfig, nats);
      writePrivate(data.valkeyConfig, `requirepass ${secrets.valkeyPassword}\n`);
      const { servers, workers, services } = machineProcesses(machineOf(options, secrets));
      await supervisor.start(servers.map(adapt));
      await prepareBroker(options, secrets, stopping);
      stopping.throwIfAborted();
      const { dataCapBytes, baseFiles } = options;
      const { box } = options;
      writeConnection({
        data,
        ports,
        secrets,
        host,
        policies,
        base,
        judge,
        engine,
        box,
        device,
        teacher,
        quantization,
        dataCapBytes,
        baseFiles,
      });
      endRestore(data);
      await supervisor.start(workers.map(adapt), services.map(adapt));
    },
  };
}

/** What its processes are made from; also of a machine that is only talked about. */
export function machineOf(options: Omit<LaunchOptions, 'terminal' | 'dataCapBytes'>, secrets: Secrets): Machine {
  const { root, data, ports, host, base, answers, engine, box, votes, checkpoints, device, teacher, judge } = options;
  return {
    quantization: options.quantization ?? 'none',
    root,
    data,
    ports,
    host,
    secrets,
    base,
    answers,
    engine,
    box,
    votes,
    checkpoints,
    device: device?.device,
    teacher,
    judge,
    model: base?.folder ?? laptopModel(root),
    policies: options.policies ?? [policy],
    environment: inheritedEnvironment(),
  };
}

/** Beside those that every start takes. */
function portsOnCards(ports: Ports, box: BoxPlan | undefined): readonly (readonly [string, number])[] {
  if (box === undefined) return [];
  const replicas = box.engines.slice(1).flatMap(({ name }, at) => {
    const { engine, loaderHealth, loaderGrpc } = replicaPorts(ports, at + 1);
    const own = [
      [name, engine],
      [`loader of ${name} metrics`, loaderHealth],
      [`loader of ${name} gRPC`, loaderGrpc],
    ];
    return own as [string, number][];
  });
  return [...replicas, ...(box.judge === undefined ? [] : ([[box.judge.name, judgeEnginePort(ports)]] as const))];
}

const brokerReadyWithinMs = 30_000;

async function prepareBroker(options: LaunchOptions, { passwords }: Secrets, signal: AbortSignal): Promise<void> {
  const { ports, data, dataCapBytes, restore, terminal, streamReplicas: replicas = 1 } = options;
  const bounds = { replicas, turnsBytesMax: Math.floor(dataCapBytes * turnsShare) };
  const prepare = async (broker: Broker) => {
    if (restore !== undefined) {
      const blobs = folderBlobStore(data.blobs);
      const onProgress = () => signal.throwIfAborted();
      const manifest = await restoreBackup({ broker, blobs, folder: restore, bounds, onProgress });
      const messages = manifest.streams.reduce((sum, stream) => sum + stream.messages, 0);
      terminal.step(`restored ${String(messages)} facts and ${String(manifest.blobs)} blobs of ${manifest.takenAt}`);
    }
    await ensureStreams(broker, { ...bounds, withinMs: brokerReadyWithinMs, signal });
  };
  await asAdmin(ports, passwords.admin, prepare, signal);
}

/** Of this machine, as its administrator. */
export function adminConnection(ports: Ports, password: string, signal?: AbortSignal): Promise<Broker> {
  return connectBroker({
    url: `nats://127.0.0.1:${String(ports.nats)}`,
    user: 'admin',
    password,
    name: 'deploy',
    logger: createLogger({ service: 'deploy', level: 'silent' }),
    ...(signal === undefined ? {} : { signal }),
  });
}

async function asAdmin(
  ports: Ports,
  password: string,
  use: (broker: Broker) => Promise<void>,
  signal?: AbortSignal,
): Promise<void> {
  const broker = await adminConnection(ports, password, signal);
  try {
    await use(broker);
  } finally {
    await broker.close();
  }
}

/**
 * Tells the trainer whether there is room on disk to learn, by a key beside the operator's own switch: an operator's pause
 * outlives a full disk, and the other way round.
 */
export async function reportRoom(
  ports: Ports,
  { passwords }: Secrets,
  policies: readonly string[],
  full: boolean,
): Promise<void> {
  await asAdmin(ports, passwords.admin, async (broker) => {
    for (const policy of policies) await storageRoom(broker, policy).put({ full });
  });
}
