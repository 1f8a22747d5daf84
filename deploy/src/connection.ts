// How commands find the running machine: addresses and the operator's credentials, in a file that only its owner reads.
import { existsSync, readFileSync } from 'node:fs';
import { baseFiles, quantizations, type BaseFiles, type Quantization } from '@backtalk/kit';
import type { BaseModel } from './base-model.js';
import type { BoxPlan } from './box-plan.js';
import { writePrivate, type DataFolder } from './data-folder.js';
import { isElsewhere, keptEngine, type EngineChoice, type KeptEngine } from './engine-choice.js';
import { engineAccess } from './engine-process.js';
import { deployErrors } from './errors.js';
import { keptJudge, type KeptJudge } from './judge-model.js';
import { endpointUrl, replicaPorts, type Ports } from './ports.js';
import { z } from 'zod';
import { baseModel, policy } from './machine.js';
import type { Secrets } from './secrets.js';
import { keptDevice, type DeviceFlag, type TrainingDevice } from './training-device.js';

export interface Connection {
  readonly endpoint: string;
  readonly engine: string;
  /** Empty for an engine elsewhere, whose key nothing here keeps. */
  readonly engineKey: string;
  /** File with the key of an engine elsewhere. */
  readonly engineKeyFile?: string;
  readonly cliToPublisher: string;
  /** What commands are about that name none. */
  readonly policy: string;
  /** All that are served and trained. */
  readonly policies: readonly string[];
  readonly baseModel: string;
  /** Folder of a base model that is not the laptop's. */
  readonly model?: string;
  /** The base model's weights, as they were at the start. */
  readonly baseFiles?: BaseFiles;
  readonly dataCapBytes?: number;
  /** The model that judges, where one was named. */
  readonly judge?: KeptJudge;
  /** What answers, where it is not the built-in engine. */
  readonly engineChoice?: KeptEngine;
  /** Where steps compute, where a start was told. */
  readonly device?: DeviceFlag;
  /** Folder of another model that teaches. */
  readonly teacher?: string;
  /** Of the base model, where it is not whole. */
  readonly quantization?: Quantization;
  readonly natsUrl: string;
  readonly natsUser: string;
  readonly natsPassword: string;
  readonly blobStore: string;
  /** Folder of the installation: its keys and secrets are in it. */
  readonly data: string;
  /** Base URLs of /readyz and /metrics, by process. */
  readonly health: Readonly<Record<string, string>>;
}

/**
 * Versions are changes to the weights of one base: on another they are noise. Engines refuse another name, and know nothing of files
 * that changed under theirs.
 */
export function refuseOtherBase(data: DataFolder, served = baseModel, files?: BaseFiles): void {
  if (!existsSync(data.connection)) return;
  const [, found = baseModel] = /"baseModel": "([^"]+)"/.exec(readFileSync(data.connection, 'utf8')) ?? [];
  if (found !== served) throw deployErrors.otherBase({ folder: data.path, found, base: served });
  const known = lastBaseFiles(data);
  if (known === undefined || files === undefined || known.digest === files.digest) return;
  throw deployErrors.changedBase({ folder: data.path, base: served, model: files.folder });
}

const names = z.array(z.string()).min(1);

/** The policies of the folder's last start; the usual one where there was none. */
export function lastPolicies(data: DataFolder): readonly string[] {
  if (!existsSync(data.connection)) return [policy];
  const [, list] = /"policies": (\[[^\]]+\])/.exec(readFileSync(data.connection, 'utf8')) ?? [];
  return list === undefined ? [policy] : names.parse(JSON.parse(list));
}

/** Folder of the base model of the folder's last start; undefined: the laptop's. */
export function lastModel(data: DataFolder): string | undefined {
  if (!existsSync(data.connection)) return undefined;
  // At the top: the model that judges has that name, too.
  const [, path] = /^ {2}"model": ("(?:[^"\\]|\\.)+")/m.exec(readFileSync(data.connection, 'utf8')) ?? [];
  return path === undefined ? undefined : z.string().parse(JSON.parse(path));
}

const toldIn = z.object({
  judge: keptJudge.optional(),
  engineChoice: keptEngine.optional(),
  device: keptDevice.optional(),
  teacher: z.string().optional(),
  quantization: z.enum(quantizations).optional(),
  baseFiles: baseFiles.optional(),
});

/** What the folder's last start was told; nothing where there was none, or one whose disk was full. */
function told(data: DataFolder): z.infer<typeof toldIn> {
  try {
    return toldIn.parse(JSON.parse(readFileSync(data.connection, 'utf8')));
  } catch {
    return {};
  }
}

/** The model that judged after the folder's last start; undefined where none was named. */
export const lastJudge = (data: DataFolder) => told(data).judge;
/** What answered then; undefined: the built-in engine. */
export const lastEngine = (data: DataFolder) => told(data).engineChoice;
/** Where steps computed then; undefined where this machine decided. */
export const lastDevice = (data: DataFolder) => told(data).device;

/** Folder of the model that taught then; undefined where none was named. */
export const lastTeacher = (data: DataFolder) => told(data).teacher;

/** How the base model's numbers were held then. */
export const lastQuantization = (data: DataFolder): Quantization => told(data).quantization ?? 'none';

/** The base model's weights of then. */
export const lastBaseFiles = (data: DataFolder) => told(data).baseFiles;

interface Started {
  readonly data: DataFolder;
  readonly ports: Ports;
  readonly secrets: Secrets;
  readonly host: string;
  readonly policies: readonly string[];
  readonly base?: Pick<BaseModel, 'name' | 'folder'> | undefined;
  readonly judge?: KeptJudge | undefined;
  readonly engine?: EngineChoice | undefined;
  /** Of a start on cards, which every such start is told anew. */
  readonly box?: BoxPlan | undefined;
  readonly device?: Pick<TrainingDevice, 'said'> | undefined;
  readonly teacher?: string | undefined;
  readonly quantization?: Quantization | undefined;
  readonly dataCapBytes?: number;
  readonly baseFiles?: BaseFiles | undefined;
}

/** How commands reach the engine, and what the next start is to choose. */
function engineIn({ engine = 'builtin', box, ports, secrets }: Started) {
  const { url, key } = engineAccess({ engine, ports, secrets });
  const isKept = engine === 'vllm' && box === undefined;
  if (!isElsewhere(engine)) return { engine: url, engineKey: key, ...(isKept ? { engineChoice: engine } : {}) };
  const { keyFile } = engine;
  const file = keyFile === undefined ? {} : { engineKeyFile: keyFile };
  return { engine: url, engineKey: '', ...file, engineChoice: keptEngine.parse(engine) };
}

export function writeConnection(started: Started): void {
  const {
    data,
    ports,
    secrets,
    host,
    policies,
    base,
    judge,
    device,
    teacher,
    quantization = 'none',
    dataCapBytes,
    baseFiles: files,
  } = started;
  const at = (port: number) => `http://127.0.0.1:${String(port)}`;
  const connection: Connection = {
    endpoint: endpointUrl(host, ports),
    ...engineIn(started),
    cliToPublisher: secrets.callTokens.cliToPublisher,
    policy: policies[0] ?? policy,
    policies,
    baseModel: base?.name ?? baseModel,
    ...(base === undefined ? {} : { model: base.folder }),
    ...(files === undefined ? {} : { baseFiles: files }),
    ...(dataCapBytes === undefined ? {} : { dataCapBytes }),
    ...(judge === undefined ? {} : { judge: keptJudge.parse(judge) }),
    ...(device?.said === undefined ? {} : { device: device.said }),
    ...(teacher === undefined ? {} : { teacher }),
    ...(quantization === 'none' ? {} : { quantization }),
    natsUrl: `nats://127.0.0.1:${String(ports.nats)}`,
    natsUser: 'cli',
    natsPassword: secrets.passwords.cli,
    blobStore: `folder:${data.blobs}`,
    data: data.path,
    health: {
      ...Object.fromEntries(Object.entries(ports.health).map(([name, port]) => [name, at(port)])),
      ...Object.fromEntries(
        (started.box?.engines.slice(1) ?? []).map((_, i) => [
          `loader-${i + 2}`,
          at(replicaPorts(ports, i + 1).loaderHealth),
        ]),
      ),
    },
  };
  writePrivate(data.connection, `${JSON.stringify(connection, null, 2)}\n`);
}
