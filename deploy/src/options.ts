// Command-line options of the supervisor, checked: what is wrong is named with what is wanted.
import { resolve } from 'node:path';
import { parseArgs } from 'node:util';
import { isPolicyName, type Quantization } from '@backtalk/kit';
import { cardsOfFlag, type Card } from './box-cards.js';
import { boxSaid, type BoxSaid } from './box-variables.js';
import { engineApi, type EngineFlags } from './engine-choice.js';
import { deployErrors } from './errors.js';
import { modelPlace, type ModelPlace } from './hub-model.js';
import { judgeApi, noJudge, type JudgeFlags } from './judge-model.js';
import { highestOffset, portsFrom, refusedPort } from './ports.js';
import { baseModel } from './machine.js';
import { wantedOfUrl, type ApiFlags } from './remote-api.js';
import { quantizationFlag } from './quantization.js';
import { noTeacher } from './teacher-model.js';
import { deviceFlag, type DeviceFlag } from './training-device.js';

export interface Options {
  readonly verb: 'start' | 'reset';
  readonly data: string;
  readonly dataCapBytes: number;
  readonly port: number;
  readonly host: string;
  readonly yes: boolean;
  /** Names of the policies; undefined: those of the last start. */
  readonly policies: readonly string[] | undefined;
  /** Another base model, by its folder or its id at the Hugging Face hub; undefined: that of the last start. */
  readonly model: ModelPlace | undefined;
  /** The model that judges; what is undefined is as in the last start. */
  readonly judge: JudgeFlags;
  /** Folder of another model that teaches, or none; undefined: as in the last start. */
  readonly teacher: string | undefined;
  /** What answers; what is undefined is as in the last start. */
  readonly engine: EngineFlags;
  /** Where steps compute; undefined: as in the last start. */
  readonly device: DeviceFlag | undefined;
  /** Of the base model's linear layers; undefined: as in the last start. */
  readonly quantization: Quantization | undefined;
  /** Folder of a backup that a new data folder starts from. */
  readonly restore: string | undefined;
  /** What is asked of a machine with cards; undefined without `--profile gpu`. */
  readonly box: BoxOptions | undefined;
}

export interface BoxOptions {
  /** What launch variables say. */
  readonly said: BoxSaid;
  /** In place of those that are here. */
  readonly cards: readonly Card[] | undefined;
  /** Says what would run where, and starts nothing. */
  readonly dryRun: boolean;
  readonly json: boolean;
  /** The variables of `compose.gpu.yaml`, in place of what would run here. */
  readonly compose: boolean;
}

/** This machine's programs alone reach it. */
export const usualHost = '127.0.0.1';
const units: Readonly<Record<string, number>> = { MB: 1e6, GB: 1e9, TB: 1e12 };

export function readOptions(
  args: readonly string[],
  root: string,
  environment?: Readonly<Record<string, string>>,
): Options {
  const { values, positionals } = parseArgs({
    args: [...args],
    allowPositionals: true,
    options: {
      data: { type: 'string', default: '.backtalk' },
      'data-cap': { type: 'string', default: '10GB' },
      port: { type: 'string' },
      profile: { type: 'string' },
      gpus: { type: 'string' },
      'dry-run': { type: 'boolean', default: false },
      json: { type: 'boolean', default: false },
      compose: { type: 'boolean', default: false },
      host: { type: 'string', default: usualHost },
      yes: { type: 'boolean', default: false },
      restore: { type: 'string' },
      policies: { type: 'string' },
      model: { type: 'string' },
      teacher: { type: 'string' },
      'judge-url': { type: 'string' },
      'judge-model': { type: 'string' },
      'judge-key-file': { type: 'string' },
      engine: { type: 'string' },
      'engine-key-file': { type: 'string' },
      device: { type: 'string' },
      quantization: { type: 'string' },
    },
  });
  const cap = values['data-cap'];
  const size = /^(\d+(?:\.\d+)?)\s*(MB|GB|TB)$/i.exec(cap.trim());
  const unit = units[size?.[2]?.toUpperCase() ?? ''];
  if (size?.[1] === undefined || unit === undefined)
    throw deployErrors.badOption({ option: 'data-cap', value: cap, wanted: 'a size such as 500MB or 10GB' });
  const box = boxOptions(values, environment);
  const { port: portSaid, ...said } = fromVariables(values, box?.said ?? {});
  return {
    verb: positionals[0] === 'reset' ? 'reset' : 'start',
    data: resolve(root, values.data),
    dataCapBytes: Number(size[1]) * unit,
    port: portOf(portSaid, box !== undefined),
    host: values.host,
    yes: values.yes,
    policies: said.policies === undefined ? undefined : policiesOf(said.policies),
    model: said.model === undefined ? undefined : modelPlace(said.model.value, root),
    teacher: teacherFlag(values.teacher, root),
    judge: judgeFlags(values, root),
    engine: engineFlags(values, root),
    device: values.device === undefined ? undefined : deviceFlag(values.device),
    quantization: quantizationFlag(values.quantization),
    restore: values.restore === undefined ? undefined : resolve(root, values.restore),
    box,
  };
}

const teacherFlag = (value: string | undefined, root: string) =>
  value === undefined || value === noTeacher ? value : resolve(root, value);

interface BoxValues {
  readonly profile?: string | undefined;
  readonly gpus?: string | undefined;
  readonly 'dry-run'?: boolean | undefined;
  readonly json?: boolean | undefined;
  readonly compose?: boolean | undefined;
}

function boxOptions(values: BoxValues, environment?: Readonly<Record<string, string>>): BoxOptions | undefined {
  const { profile, gpus, 'dry-run': dryRun = false, json = false, compose = false } = values;
  if (profile !== undefined && profile !== 'gpu' && profile !== 'laptop')
    throw deployErrors.badOption({ option: 'profile', value: profile, wanted: 'laptop or gpu' });
  const cards = gpus === undefined ? undefined : cardsOfFlag(gpus);
  if (profile === 'gpu' && (json || compose) && !dryRun)
    throw deployErrors.badOption({
      option: json ? 'json' : 'compose',
      value: 'true',
      wanted: 'usable without --dry-run',
    });
  if (profile === 'gpu') return { said: boxSaid(environment), cards, dryRun, json, compose };
  const [option] = Object.entries({ 'dry-run': dryRun, json, compose, gpus: gpus !== undefined }).flatMap(
    ([name, isSaid]) => (isSaid ? [name] : []),
  );
  if (option === undefined) return undefined;
  throw deployErrors.badOption({ option, value: 'true', wanted: 'usable without --profile gpu' });
}

/** A value with what named it. */
interface Said {
  readonly by: string;
  readonly value: string;
}

type VariableFlags = Readonly<Partial<Record<'port' | 'policies' | 'model', string | undefined>>>;

/** Flags go before the variables of launch scripts, which only a start on cards reads. */
function fromVariables(flags: VariableFlags, { PORT, SERVED_MODEL_NAME, HF_CKPT }: BoxSaid) {
  const said = (flag: keyof VariableFlags, variable: string, value: string | undefined): Said | undefined => {
    const given = flags[flag];
    if (given !== undefined) return { by: `--${flag}`, value: given };
    return value === undefined ? undefined : { by: variable, value };
  };
  return {
    port: said('port', 'PORT', PORT),
    policies: said('policies', 'SERVED_MODEL_NAME', SERVED_MODEL_NAME),
    model: said('model', 'HF_CKPT', HF_CKPT),
  };
}

function refusalOf({ by, value }: Said, wanted: string) {
  if (by.startsWith('--')) return deployErrors.badOption({ option: by.slice(2), value, wanted });
  return deployErrors.boxRefused({ why: `${by}=${value} is not ${wanted}` });
}

const portUsual: Said = { by: '--port', value: '30000' };

function portOf(said: Said = portUsual, onCards = false): number {
  const port = Number(said.value);
  const highest = highestOffset[onCards ? 'gpu' : 'laptop'];
  if (!Number.isInteger(port) || port < 1024 || port + highest > 65_535)
    throw refusalOf(said, `a port from 1024 to ${String(65_535 - highest)}`);
  const refused = refusedPort(portsFrom(port));
  if (refused !== undefined)
    throw refusalOf(said, `usable: a part would listen on ${String(refused)}, which browsers refuse to call`);
  return port;
}

type JudgeValues = Readonly<Record<'judge-url' | 'judge-model' | 'judge-key-file', string | undefined>>;

function judgeFlags(values: Partial<JudgeValues>, root: string): JudgeFlags {
  const { 'judge-url': url, 'judge-model': model, 'judge-key-file': file } = values;
  if (url !== noJudge) refuseNoAddress(url, judgeApi);
  if (model?.trim() === '') throw deployErrors.badOption({ option: 'judge-model', value: model, wanted: 'a name' });
  return { url, model, keyFile: file === undefined ? undefined : resolve(root, file) };
}

type EngineValues = Readonly<Record<'engine' | 'engine-key-file', string | undefined>>;

function engineFlags(values: Partial<EngineValues>, root: string): EngineFlags {
  const { engine, 'engine-key-file': file } = values;
  if (engine !== 'builtin' && engine !== 'vllm') refuseNoAddress(engine, engineApi);
  return { engine, keyFile: file === undefined ? undefined : resolve(root, file) };
}

function refuseNoAddress(url: string | undefined, flags: ApiFlags): void {
  const wanted = url === undefined ? undefined : wantedOfUrl(url, flags);
  if (wanted !== undefined) throw deployErrors.badOption({ option: flags.option, value: withoutSecrets(url), wanted });
}

/** What may be a key is repeated nowhere. */
const withoutSecrets = (url = '') => (/[@?]/.test(url) ? '…' : url);

const policiesMax = 16;

/** A name becomes a part of paths, of subjects on the broker and of versions' names, which end with -v and a number. */
function policiesOf(said: Said): readonly string[] {
  const names = said.value.split(',').map((name) => name.trim());
  if (
    names.every(isPolicyName) &&
    !names.includes(baseModel) &&
    new Set(names).size === names.length &&
    names.length <= policiesMax
  )
    return names;
  const wanted = `one to ${String(policiesMax)} different names with commas between, each of letters, digits, - and _, none like a version (ada-v1) or the base model`;
  throw refusalOf(said, wanted);
}
