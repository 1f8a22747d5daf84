// How commands find the running machine: addresses and the operator's credentials, in a file that only its owner reads.
import { chmodSync, existsSync, readFileSync, writeFileSync } from 'node:fs';
import type { DataFolder } from './data-folder.js';
import { deployErrors } from './errors.js';
import { endpointUrl, type Ports } from './ports.js';
import { baseModel, policy } from './processes.js';
import type { Secrets } from './secrets.js';

export interface Connection {
  readonly endpoint: string;
  readonly engine: string;
  readonly engineKey: string;
  readonly serviceToken: string;
  readonly policy: string;
  readonly baseModel: string;
  readonly natsUrl: string;
  readonly natsUser: string;
  readonly natsPassword: string;
  readonly valkeyUrl: string;
  readonly blobStore: string;
  /** Folder of the installation: its keys and secrets are in it. */
  readonly data: string;
  /** Base URLs of /readyz and /metrics, by process. */
  readonly health: Readonly<Record<string, string>>;
}

/** Versions are changes to the weights of one base: on another they are noise, and engines refuse them. */
export function refuseOtherBase(data: DataFolder): void {
  if (!existsSync(data.connection)) return;
  const [, found = baseModel] = /"baseModel": "([^"]+)"/.exec(readFileSync(data.connection, 'utf8')) ?? [];
  if (found !== baseModel) throw deployErrors.otherBase({ folder: data.path, found, base: baseModel });
}

export function writeConnection(data: DataFolder, ports: Ports, secrets: Secrets, host: string): void {
  const at = (port: number) => `http://127.0.0.1:${String(port)}`;
  const connection: Connection = {
    endpoint: endpointUrl(host, ports),
    engine: at(ports.engine),
    engineKey: secrets.engineKey,
    serviceToken: secrets.serviceToken,
    policy,
    baseModel,
    natsUrl: `nats://127.0.0.1:${String(ports.nats)}`,
    natsUser: 'cli',
    natsPassword: secrets.passwords.cli,
    valkeyUrl: `redis://127.0.0.1:${String(ports.valkey)}`,
    blobStore: `folder:${data.blobs}`,
    data: data.path,
    health: Object.fromEntries(Object.entries(ports.health).map(([name, port]) => [name, at(port)])),
  };
  writeFileSync(data.connection, `${JSON.stringify(connection, null, 2)}\n`, { mode: 0o600 });
  // The mode above is that of a new file; one that was there keeps its own.
  chmodSync(data.connection, 0o600);
}
