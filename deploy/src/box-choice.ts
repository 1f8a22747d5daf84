// What a start on cards serves, judges with and trains: `--profile gpu`. In: options with the launch variables, the cards, the data
// folder. Out: the plan with all that a start chooses elsewhere too, each printed with its reasons; or one line that says why not.
// A dry run fetches nothing and asks neither torch nor the engine.
import { accessSync, constants, existsSync, mkdirSync } from 'node:fs';
import { freemem } from 'node:os';
import { delimiter, join, resolve } from 'node:path';
import { environmentOf, inheritedEnvironment, usableShare, type Quantization, type Room } from '@backtalk/kit';
import { checkTemplate, plannedModel, readBaseModel, recipeFor, type BaseModel } from './base-model.js';
import { cardsHere, type Card } from './box-cards.js';
import { boxPlan, type BoxPlan, type PlannedModel } from './box-plan.js';
import type { ChosenModels, Choosing } from './chosen-models.js';
import { lastJudge, lastModel, lastPolicies } from './connection.js';
import { adapterRank } from './engine-process.js';
import { deployErrors } from './errors.js';
import { fetchHubModel, modelPlace, type ModelPlace } from './hub-model.js';
import { laptopModel, type LaunchOptions } from './launch.js';
import { usualHost, type BoxOptions, type Options } from './options.js';
import { namedJudge, noJudge } from './judge-model.js';
import { chosenQuantization } from './quantization.js';
import { chosenTeacher, noTeacher } from './teacher-model.js';
import { askTorch, deviceIn, trainingDevice, type TrainingDevice } from './training-device.js';
import { onlyCards, vllmOnCards } from './vllm-program.js';

export type ChosenOnCards = Pick<ChosenModels, 'policies' | 'engine' | 'device' | 'base' | 'answers'> &
  Required<Pick<LaunchOptions, 'box' | 'quantization'>> &
  Pick<LaunchOptions, 'votes' | 'checkpoints' | 'teacher'>;

export async function chosenOnCards(choosing: Choosing, { said, ...asked }: BoxOptions): Promise<ChosenOnCards> {
  const { root, options, data, terminal } = choosing;
  refuseTwoAnswers(options, said);
  const quantization = chosenQuantization(options.quantization, data, inheritedEnvironment());
  const teacher = chosenTeacher(choosing);
  if (asked.compose) refuseForCompose(choosing, { quantization, ...teacher }, ownJudge(said) !== undefined);
  if (asked.cards !== undefined && !asked.dryRun)
    throw deployErrors.boxRefused({ why: '--gpus plans for cards that are not here: add --dry-run' });
  const environment = inheritedEnvironment();
  const checkpoints = said.SAVE_CKPT === undefined ? undefined : resolve(root, said.SAVE_CKPT);
  if (!asked.dryRun) {
    refuseWithoutVllm(vllmOnCards(environment));
    if (checkpoints !== undefined) refuseUnwritable(checkpoints);
  }
  const cards = asked.cards ?? (await cardsHere());
  const policies = options.policies ?? lastPolicies(data);
  const last = lastModel(data);
  const place = options.model ?? (last === undefined ? undefined : { folder: last });
  const folder =
    place === undefined ? laptopModel(root) : await folderOf({ ...choosing, cards, quantization }, place, asked.dryRun);
  const model = plannedModel(folder, !asked.dryRun);
  const judge = await judgeOf({ ...choosing, cards }, said.PRM_MODEL_PATH, asked.dryRun);
  const flag = options.device ?? deviceIn(environment) ?? 'cuda';
  const box = boxPlan({
    cards,
    said,
    model,
    judge: judge?.folder === folder ? undefined : judge,
    rank: adapterRank({ base: place === undefined ? undefined : { recipe: recipeFor(model.parameters) }, environment }),
    policies: policies.length,
    trainsOnCard: flag !== 'cpu',
    quantization,
    // Compose has one serving engine.
    ...(asked.compose ? { enginesMax: 1 } : {}),
  });
  for (const [what, why] of box.reasons) terminal.step(`cards: ${what}: ${why}`);
  const device = asked.dryRun
    ? plannedDevice(box)
    : await trainingDevice(flag, undefined, () => askTorch(root, { ...environment, ...cardOf(box) }));
  return {
    policies,
    engine: 'vllm',
    device: { ...device, said: options.device },
    ...(place === undefined ? {} : await baseOf({ ...choosing, quantization }, model, box, asked.dryRun)),
    box,
    quantization,
    ...teacher,
    ...(said.PRM_M === undefined ? {} : { votes: said.PRM_M }),
    ...(checkpoints === undefined ? {} : { checkpoints }),
  };
}

/** What compose.gpu.yaml has no variable for, with the value that stands for none. */
function refuseForCompose(
  { options: { judge, host }, data }: Choosing,
  { quantization, teacher }: Partial<ChosenOnCards>,
  hasOwnJudge: boolean,
): void {
  if (quantization !== 'none')
    throw deployErrors.quantizationRefused({ why: 'compose.gpu.yaml starts vLLM without it (leave out --compose)' });
  const flags = [
    ['--teacher', teacher ?? noTeacher, noTeacher],
    ['--judge-url', (hasOwnJudge ? undefined : namedJudge(judge, lastJudge(data))?.url) ?? noJudge, noJudge],
    ['--host', host, usualHost],
  ] as const;
  const said = flags.find(([, value, none]) => value !== none);
  if (said === undefined) return;
  const [flag, , none] = said;
  throw deployErrors.boxRefused({
    why: `compose.gpu.yaml takes no ${flag}: say ${flag} ${none}, or leave out --compose`,
  });
}

function refuseTwoAnswers({ engine, judge }: Options, said: BoxOptions['said']): void {
  if (engine.engine !== undefined && engine.engine !== 'vllm')
    throw deployErrors.boxRefused({
      why: `it starts vLLM on this machine's cards, and --engine ${engine.engine} is another: leave one out`,
    });
  const own = ownJudge(said);
  if (own !== undefined && judge.url !== undefined && judge.url !== noJudge)
    throw deployErrors.boxRefused({ why: `--judge-url and ${own} name two judges: leave one out` });
}

/** The variable that asks for an engine which judges alone. */
function ownJudge({ PRM_MODEL_PATH: path, PRM_GPUS: cards = 0 }: BoxOptions['said']): string | undefined {
  if (path !== undefined) return 'PRM_MODEL_PATH';
  return cards > 0 ? 'PRM_GPUS' : undefined;
}

/** As the shell finds it. */
function refuseWithoutVllm(program: string): void {
  const folders = (environmentOf(['PATH'])['PATH'] ?? '').split(delimiter);
  const places = program.includes('/') ? [program] : folders.map((folder) => join(folder, program));
  if (places.some(isProgram)) return;
  throw deployErrors.boxRefused({
    why: `${program} is not here: install vLLM for your cards (pip install vllm), or name its program with BACKTALK_VLLM`,
  });
}

function refuseUnwritable(folder: string): void {
  try {
    mkdirSync(folder, { recursive: true });
    accessSync(folder, constants.W_OK);
  } catch {
    throw deployErrors.boxRefused({ why: `SAVE_CKPT=${folder} is no folder that can be written to` });
  }
}

function isProgram(path: string): boolean {
  try {
    accessSync(path, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}

interface ForCards extends Choosing {
  readonly cards: readonly Card[];
  readonly quantization?: Quantization;
}

async function folderOf(
  { root, data, terminal, signal, cards, quantization }: ForCards,
  place: ModelPlace,
  isDry: boolean,
): Promise<string> {
  if (!('hub' in place)) return place.folder;
  const { models } = data;
  const fetched = join(models, ...place.hub.split('/'));
  if (isDry && existsSync(join(fetched, 'config.json'))) return fetched;
  if (isDry)
    throw deployErrors.boxRefused({
      why: `${place.hub} is not fetched yet, and a dry run fetches nothing: name a folder with its config.json`,
    });
  const freeBytes = usableShare * Math.max(...cards.map(({ bytes }) => bytes));
  const room = { freeBytes: freemem(), card: { freeBytes, numberBytes: 2 }, engineContext: 0, quantization };
  return fetchHubModel({ root, models, id: place.hub, room, terminal, signal });
}

async function judgeOf(
  choosing: ForCards,
  path: string | undefined,
  isDry: boolean,
): Promise<PlannedModel | undefined> {
  if (path === undefined) return undefined;
  return plannedModel(await folderOf(choosing, modelPlace(path, choosing.root), isDry), !isDry);
}

const cardOf = ({ training }: BoxPlan) => (training === undefined ? {} : onlyCards(training.cards));

const plannedDevice = ({ training }: BoxPlan): TrainingDevice =>
  training === undefined
    ? { device: 'cpu', freeBytes: 0, said: undefined, reason: 'the CPU (--device cpu)' }
    : { device: 'cuda', freeBytes: training.roomBytes, said: undefined, reason: `card ${training.cards.join(', ')}` };

async function baseOf(
  { root, terminal, quantization }: Choosing & { readonly quantization: Quantization },
  model: PlannedModel,
  box: BoxPlan,
  isDry: boolean,
): Promise<Pick<ChosenModels, 'base' | 'answers'>> {
  const { folder } = model;
  if (isDry && !existsSync(join(folder, 'tokenizer.json'))) return { base: baseInPlan(model, box) };
  const base = isDry ? baseInPlan(model, box) : readBaseModel(folder, { ...roomIn(box), quantization });
  const answers = await checkTemplate(root, folder);
  for (const [what, why] of [...base.reasons, ['tools', answers]]) terminal.step(`${base.name}: ${what} ${why}`);
  return { base, answers };
}

/** The engine has its own part of the cards: what is left of one is training's. */
function roomIn({ engines, training }: BoxPlan): Room {
  return {
    freeBytes: freemem(),
    engineContext: engines[0]?.contextTokens ?? 0,
    ...(training === undefined ? {} : { card: { freeBytes: training.roomBytes, numberBytes: 2 } }),
  };
}

function baseInPlan({ name, folder, parameters }: PlannedModel, { engines, training }: BoxPlan): BaseModel {
  const contextTokens = engines[0]?.contextTokens ?? 0;
  const sampleTokens = training?.sampleTokens ?? contextTokens;
  const bounds = { contextTokens, sampleTokens, kvTokens: 0, kvBytes: 0 };
  return { name, folder, parameters, recipe: recipeFor(parameters), reasons: [], ...bounds };
}
