// What a start leaves for commands and for the next start, and what that one reads of it (`connection.json`, whose shape is the kit's).
// In: a data folder. Out: what its last start was told, with the usual where there was none; a damaged file is refused in one line.
import {
  connectionText,
  readConnectionFile,
  type BaseFiles,
  type ConnectionFile,
  type KeptJudge,
  type Quantization,
} from '@backtalk/kit';
import type { BaseModel } from './base-model.js';
import type { BoxPlan } from './box-plan.js';
import { writePrivate, type DataFolder } from './data-folder.js';
import { isElsewhere, type EngineChoice } from './engine-choice.js';
import { engineAccess } from './engine-process.js';
import { deployErrors } from './errors.js';
import { endpointUrl, replicaPorts, type Ports } from './ports.js';
import { baseModel, policy } from './machine.js';
import type { Secrets } from './secrets.js';
import type { TrainingDevice } from './training-device.js';

const last = ({ connection }: DataFolder): Partial<ConnectionFile> => readConnectionFile(connection) ?? {};

/**
 * Versions are changes to the weights of one base: on another they are noise. Engines refuse another name, and know nothing of files
 * that changed under theirs.
 */
export function refuseOtherBase(data: DataFolder, served = baseModel, files?: BaseFiles): void {
  const { baseModel: found = served, baseFiles: known } = last(data);
  if (found !== served) throw deployErrors.otherBase({ folder: data.path, found, base: served });
  if (known === undefined || files === undefined || known.digest === files.digest) return;
  throw deployErrors.changedBase({ folder: data.path, base: served, model: files.folder });
}

/** The policies of the folder's last start; the usual one where there was none. */
export function lastPolicies(data: DataFolder): readonly string[] {
  const { policy: first = policy, policies = [] } = last(data);
  return policies.length > 0 ? policies : [first];
}

/** Folder of the base model of the folder's last start; undefined: the laptop's. */
export const lastModel = (data: DataFolder) => last(data).model;
/** The model that judged after the folder's last start; undefined where none was named. */
export const lastJudge = (data: DataFolder) => last(data).judge;
/** What answered then; undefined: the built-in engine. */
export const lastEngine = (data: DataFolder) => last(data).engineChoice;
/** Where steps computed then; undefined where this machine decided. */
export const lastDevice = (data: DataFolder) => last(data).device;
/** Folder of the model that taught then; undefined where none was named. */
export const lastTeacher = (data: DataFolder) => last(data).teacher;
/** How the base model's numbers were held then. */
export const lastQuantization = (data: DataFolder): Quantization => last(data).quantization ?? 'none';
/** The base model's weights of then. */
export const lastBaseFiles = (data: DataFolder) => last(data).baseFiles;

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
  if (isElsewhere(engine)) return { engine: url, engineKey: '', engineKeyFile: engine.keyFile, engineChoice: engine };
  return { engine: url, engineKey: key, engineChoice: engine === 'vllm' && box === undefined ? engine : undefined };
}

export function writeConnection(started: Started): void {
  const { data, ports, secrets, host, policies, base, judge, device, teacher, dataCapBytes, baseFiles } = started;
  const { quantization = 'none', box } = started;
  const at = (port: number) => `http://127.0.0.1:${String(port)}`;
  const connection: ConnectionFile = {
    endpoint: endpointUrl(host, ports),
    ...engineIn(started),
    cliToPublisher: secrets.callTokens.cliToPublisher,
    policy: policies[0] ?? policy,
    policies,
    baseModel: base?.name ?? baseModel,
    model: base?.folder,
    baseFiles,
    dataCapBytes,
    judge,
    device: device?.said,
    teacher,
    quantization: quantization === 'none' ? undefined : quantization,
    natsUrl: `nats://127.0.0.1:${String(ports.nats)}`,
    natsUser: 'cli',
    natsPassword: secrets.passwords.cli,
    blobStore: `folder:${data.blobs}`,
    data: data.path,
    health: {
      ...Object.fromEntries(Object.entries(ports.health).map(([name, port]) => [name, at(port)])),
      ...Object.fromEntries(
        (box?.engines.slice(1) ?? []).map((_, i) => [`loader-${i + 2}`, at(replicaPorts(ports, i + 1).loaderHealth)]),
      ),
    },
  };
  writePrivate(data.connection, connectionText(connection));
}
