// What a start serves, trains and judges with: what its flags say, or else what the last start was told. In: the options and the
// data folder. Out: engine, device, base model and judge, each looked at and printed with its reasons; what does not fit is refused
// in one line. Starts nothing.
import { existsSync } from 'node:fs';
import { freemem } from 'node:os';
import { basename } from 'node:path';
import { baseFilesIn, inheritedEnvironment, type Quantization, type Room } from '@backtalk/kit';
import { checkTemplate, readBaseModel } from './base-model.js';
import { chosenOnCards } from './box-choice.js';
import { lastBaseFiles, lastDevice, lastEngine, lastJudge, lastModel, lastPolicies } from './connection.js';
import type { DataFolder } from './data-folder.js';
import {
  engineChoice,
  isElsewhere,
  reasonOfEngine,
  refuseOtherBaseOf,
  refuseUnsharedFolder,
  type EngineChoice,
} from './engine-choice.js';
import { adapterRank } from './engine-process.js';
import { deployErrors } from './errors.js';
import { fetchHubModel, type ModelPlace } from './hub-model.js';
import { judgeModel } from './judge-model.js';
import { laptopModel, type LaunchOptions } from './launch.js';
import { refuseOthersLearning } from './learned-with.js';
import { baseModel } from './machine.js';
import type { Options } from './options.js';
import { dtypeOn } from './processes.js';
import { chosenQuantization, refuseEngine } from './quantization.js';
import { chosenTeacher } from './teacher-model.js';
import type { Terminal } from './terminal.js';
import { askTorch, deviceIn, trainingDevice, type TrainingDevice } from './training-device.js';

export interface Choosing {
  readonly root: string;
  readonly options: Options;
  readonly data: DataFolder;
  readonly terminal: Terminal;
  readonly signal: AbortSignal;
}

export type ChosenModels = Pick<
  LaunchOptions,
  'base' | 'answers' | 'baseFiles' | 'judge' | 'box' | 'votes' | 'checkpoints' | 'teacher'
> &
  Required<Pick<LaunchOptions, 'policies' | 'engine' | 'device' | 'quantization'>>;

export async function chosenModels(choosing: Choosing): Promise<ChosenModels> {
  const { root, options, data, terminal } = choosing;
  const { box } = options;
  refuseOthersLearning(data, options.restore, {
    baseModel: nameAt(placeOf(choosing)),
    policies: options.policies ?? lastPolicies(data),
    quantization: chosenQuantization(options.quantization, data, inheritedEnvironment()),
  });
  const chosen = box === undefined ? await chosenHere(choosing) : await chosenOnCards(choosing, box);
  const { policies, base } = chosen;
  if (base !== undefined && policies.includes(base.name))
    throw deployErrors.modelRefused({ folder: base.folder, why: 'a policy has its name' });
  const files = await baseFilesIn(base?.folder ?? laptopModel(root), lastBaseFiles(data));
  const judge = chosen.box?.judge === undefined ? await judgeModel(options.judge, lastJudge(data)) : undefined;
  if (judge !== undefined && judge.away !== '') terminal.warn(`the judge at ${judge.url}: ${judge.away}; votes wait`);
  return {
    ...chosen,
    ...(files === undefined ? {} : { baseFiles: files }),
    ...(judge === undefined ? {} : { judge }),
  };
}

/** Without a plan for cards: what answers may be here or elsewhere. */
async function chosenHere(choosing: Choosing): Promise<ChosenModels> {
  const { root, options, data, terminal } = choosing;
  const before = lastPolicies(data);
  const policies = options.policies ?? before;
  const left = existsSync(data.connection) ? before.filter((name) => !policies.includes(name)) : [];
  if (left.length > 0)
    terminal.warn(
      `${left.join(', ')} served before and is not named: what it learned stays (--policies ${left.join(',')})`,
    );
  const engine = await engineChoice(options.engine, lastEngine(data), root, choosing.signal);
  const device = await trainingDevice(options.device ?? deviceIn(inheritedEnvironment()), lastDevice(data), () =>
    askTorch(root),
  );
  terminal.step(`engine: ${reasonOfEngine(engine)}`);
  terminal.step(`training: ${device.reason}`);
  const quantization = chosenQuantization(options.quantization, data, inheritedEnvironment());
  refuseEngine(engine, quantization);
  if (quantization !== 'none')
    tellQuantization(terminal, engine, options.model === undefined && lastModel(data) === undefined);
  const teacher = chosenTeacher(choosing);
  const { base, answers } = await baseOf({ ...choosing, quantization }, engine, device);
  if (isElsewhere(engine)) {
    const rank = adapterRank({ base, environment: inheritedEnvironment() });
    await refuseUnsharedFolder(engine, { model: base?.folder ?? laptopModel(root), adapters: data.adapters, rank });
  }
  return {
    policies,
    engine,
    device,
    quantization,
    ...teacher,
    ...(base === undefined ? {} : { base }),
    ...(answers === undefined ? {} : { answers }),
  };
}

function tellQuantization(terminal: Terminal, engine: EngineChoice, isLaptops: boolean): void {
  terminal.step('numbers: 4 bits each in linear layers (--quantization nf4)');
  if (isLaptops)
    terminal.warn(
      "the laptop's model is too small for 4 bits: its log-probabilities move by .7 nats a token (--model DIR)",
    );
  if (isElsewhere(engine))
    terminal.warn(
      `${engine.url} has to hold the base so, too (vLLM: --quantization bitsandbytes), or no version may serve`,
    );
}

async function baseOf(
  choosing: Choosing & { readonly quantization: Quantization },
  engine: EngineChoice,
  device: TrainingDevice,
): Promise<Pick<LaunchOptions, 'base' | 'answers'>> {
  const { root, data, terminal, signal, quantization } = choosing;
  const place = placeOf(choosing);
  if (isElsewhere(engine)) refuseOtherBaseOf(engine, nameAt(place));
  if (place === undefined) return {};
  const room = { ...roomFor(engine, device), quantization };
  const { models } = data;
  const folder =
    'hub' in place ? await fetchHubModel({ root, models, id: place.hub, room, terminal, signal }) : place.folder;
  const base = readBaseModel(folder, room);
  const answers = await checkTemplate(root, base.folder);
  for (const [what, why] of [...base.reasons, ['tools', answers]]) terminal.step(`${base.name}: ${what} ${why}`);
  return { base, answers };
}

/** Undefined: the laptop's. */
function placeOf({ options, data }: Choosing): ModelPlace | undefined {
  const last = lastModel(data);
  return options.model ?? (last === undefined ? undefined : { folder: last });
}

/** A model's name is its folder's, which is known before its weights are fetched. */
function nameAt(place: ModelPlace | undefined): string {
  if (place === undefined) return baseModel;
  return basename('hub' in place ? place.hub : place.folder);
}

const numberBytes = { float32: 4, bfloat16: 2 } as const;

function roomFor(engine: EngineChoice, { device, freeBytes }: TrainingDevice): Room {
  const card = { freeBytes, numberBytes: numberBytes[dtypeOn(device, engine)] };
  return {
    freeBytes: freemem(),
    ...(device === 'cuda' ? { card } : {}),
    ...(isElsewhere(engine) ? { engineContext: engine.contextTokens } : {}),
  };
}
