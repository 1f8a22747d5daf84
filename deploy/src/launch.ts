// Starts the processes of one machine: servers, streams, then all parts at once. Takes where state lives and which ports;
// gives a supervisor that keeps them up. Tests replace single processes through `adapt`.
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { connectBroker, createLogger, ensureStreams, inheritedEnvironment, natsConfig } from '@backtalk/kit';
import type { ProcessSpec } from './child.js';
import { writeConnection } from './connection.js';
import type { DataFolder } from './data-folder.js';
import { deployErrors } from './errors.js';
import { busyPorts, type Ports } from './ports.js';
import { ProcessBook } from './process-book.js';
import { machineProcesses, policy } from './processes.js';
import { loadSecrets, type Secrets } from './secrets.js';
import { restoreInto, takeFiles } from './restore.js';
import { Supervisor } from './supervisor.js';
import type { Terminal } from './terminal.js';

export interface LaunchOptions {
  readonly root: string;
  readonly data: DataFolder;
  readonly ports: Ports;
  readonly host: string;
  readonly dataCapBytes: number;
  readonly terminal: Terminal;
  /** Folder of a backup that a new data folder starts from. */
  readonly restore?: string;
  /** Copies of every stream, where the broker is a cluster. */
  readonly streamReplicas?: number;
  /** Changes a process before it starts. */
  readonly adapt?: (spec: ProcessSpec) => ProcessSpec;
}

export interface Launched {
  readonly supervisor: Supervisor;
  readonly secrets: Secrets;
  /** Starts everything; resolves when all of it serves. */
  up(): Promise<void>;
}

/** Of the data folder's cap: the log of turns may take this much; weights and the rest share what is left. */
const turnsShare = 0.4;

export function launch(options: LaunchOptions): Launched {
  const { data, ports, host, root, terminal } = options;
  const adapt = options.adapt ?? ((spec: ProcessSpec) => spec);
  if (options.restore !== undefined) takeFiles(options.restore, data);
  const secrets = loadSecrets(data.path);
  const supervisor = new Supervisor(data.logs, terminal, new ProcessBook(data.processes));
  return {
    supervisor,
    secrets,
    up: async () => {
      await checkPorts(ports, host);
      const { servers, workers, services } = machineProcesses({
        root,
        data,
        ports,
        host,
        secrets,
        natsConfig: writeNatsConfig(data, ports, secrets),
        model: join(root, '.venv', 'models', 'smollm2-135m-instruct'),
        policy,
        environment: inheritedEnvironment(),
      });
      await supervisor.start(servers.map(adapt));
      await prepareBroker(options, secrets);
      writeConnection(data, ports, secrets, host);
      await supervisor.start(workers.map(adapt), services.map(adapt));
    },
  };
}

async function checkPorts(ports: Ports, host: string): Promise<void> {
  const [first] = await busyPorts(ports, host);
  if (first !== undefined) throw deployErrors.portBusy({ name: first[0], port: first[1], endpoint: ports.endpoint });
}

function writeNatsConfig(data: DataFolder, ports: Ports, { passwords }: Secrets): string {
  const file = join(data.path, 'nats.conf');
  const { nats: port, natsMonitor: monitorPort } = ports;
  writeFileSync(file, natsConfig({ port, monitorPort, storeDirectory: data.nats, passwords }), { mode: 0o600 });
  return file;
}

const brokerReadyWithinMs = 30_000;

async function prepareBroker(options: LaunchOptions, secrets: Secrets): Promise<void> {
  const { ports, data, dataCapBytes, restore, terminal, streamReplicas: replicas = 1 } = options;
  const broker = await connectBroker({
    url: `nats://127.0.0.1:${String(ports.nats)}`,
    user: 'admin',
    password: secrets.passwords.admin,
    name: 'deploy',
    logger: createLogger({ service: 'deploy', level: 'silent' }),
  });
  try {
    if (restore !== undefined) await restoreInto(broker, data, restore, terminal);
    await ensureStreams(broker, {
      replicas,
      turnsBytesMax: Math.floor(dataCapBytes * turnsShare),
      withinMs: brokerReadyWithinMs,
    });
  } finally {
    await broker.close();
  }
}
