// `npm run bench:learning`: does the running system learn wishes, keep them, and learn nothing where nobody teaches? Gateway in,
// weights out: simulated users talk, and versions answer questions that nobody asked them. A figure that is missed is written
// as missed; nothing here is asserted.
import { createHash } from 'node:crypto';
import { createReadStream, existsSync, readdirSync } from 'node:fs';
import { freemem } from 'node:os';
import { join } from 'node:path';
import { askTorch, baseModel, readBaseModel, trainingDevice, type BaseModel } from '@backtalk/deploy';
import { asBacktalkError } from '@backtalk/kit';
import { root } from '../loop/machine.js';
import { writeDocument } from './learning/document.js';
import { presetFor } from './learning/machine-options.js';
import { recipeDigest } from './learning/made-from.js';
import { helpText, readPlan, type LearningPlan } from './learning/options.js';
import { unitsOf } from './learning/parts.js';
import { ResultStore, type UnitResult } from './learning/result.js';
import { runUnit, titleOf } from './learning/run-unit.js';
import type { Place } from './learning/unit.js';
import { createOutput, type Output } from './output.js';

const laptopModel = join(root, '.venv', 'models', baseModel);

async function main(output: Output): Promise<void> {
  const plan = readPlan(process.argv.slice(2));
  if (plan.help) {
    output.line(helpText);
    return;
  }
  const place = await placeOf(plan);
  const digest = await digestOf(place);
  const store = new ResultStore(join(plan.results, folderOf(plan, digest)));
  const [weights = '', recipe = ''] = digest.split('.');
  const model = plan.model === undefined ? 'of the laptop' : 'named by `--model`';
  const about = `Base model ${model} (weights \`${weights}\`), recipe \`${recipe}\``;
  for (const unit of unitsOf(plan, store, place)) {
    if (store.find(unit) !== undefined) output.settle(`${titleOf(unit)}: kept from before`);
    else if (!(await runUnit(unit, store, output, place.device))) process.exitCode = 1;
    writeDocument(plan, measuredAlike(plan, digest), about);
  }
  writeDocument(plan, measuredAlike(plan, digest), about);
  if (plan.json) output.line(JSON.stringify(store.all(), null, 2));
  else output.settle(`figures and pictures: ${plan.document}`);
}

async function placeOf({ model, device: flag }: LearningPlan): Promise<Place> {
  const device = flag === undefined ? undefined : await trainingDevice(flag, undefined, () => askTorch(root));
  const card = device?.device === 'cuda' ? { freeBytes: device.freeBytes, numberBytes: float32Bytes } : undefined;
  const base = model === undefined ? undefined : readBaseModel(model, { freeBytes: freemem(), card });
  return { base, device };
}

/** Where the engine is the built-in one, steps compute in these on a card, too. */
const float32Bytes = 4;

/** Of a model's weights, and of its recipe as it is: results of different ones are never compared. */
async function digestOf({ base, device }: Place): Promise<string> {
  const weights = (await weightsDigest(base)).slice(0, 12);
  // Results of steps on a card stand apart: bytes and seconds are others.
  return `${weights}.${recipeDigest(presetFor(base))}${device?.device === 'cuda' ? '.cuda' : ''}`;
}

async function weightsDigest(base: BaseModel | undefined): Promise<string> {
  const folder = base?.folder ?? laptopModel;
  const files = readdirSync(folder).filter((name) => name.endsWith('.safetensors'));
  const hash = createHash('sha256');
  for (const file of files.sort())
    for await (const chunk of createReadStream(join(folder, file))) hash.update(chunk as Buffer);
  return hash.digest('hex');
}

/** Of the same weights and recipe, on as many questions: runs of other lengths too, this plan's own before them. */
function measuredAlike(plan: LearningPlan, digest: string): UnitResult[] {
  const { questions, samples } = plan.sizes;
  const own = folderOf(plan, digest);
  const folders = existsSync(plan.results) ? readdirSync(plan.results).sort() : [];
  const isAlike = (folder: string) =>
    folder.startsWith(`${digest}-`) && folder.endsWith(`-${String(questions)}-${String(samples)}`) && folder !== own;
  const resultsIn = (folder: string) =>
    new ResultStore(join(plan.results, folder)).all().map((result) => ({ ...result, run: folder }));
  const kept = [own, ...folders.filter(isAlike)].flatMap(resultsIn);
  const all = [...kept.filter(({ stopped }) => !stopped), ...kept.filter(({ stopped }) => stopped)];
  const keyOf = ({ part, name, seed }: UnitResult) => `${part} ${name} ${String(seed)}`;
  // What a unit is compared with stands beside it, so that of the base, and of a wish alone, each run's own measurement stays.
  const isFirst = (one: UnitResult) =>
    ['base', 'a'].includes(one.part) || one === all.find((other) => keyOf(other) === keyOf(one));
  return all.filter(isFirst).sort((a, b) => a.part.localeCompare(b.part) || a.name.localeCompare(b.name));
}

function folderOf({ sizes }: LearningPlan, digest: string): string {
  return [digest, sizes.steps, sizes.every, sizes.questions, sizes.samples].join('-');
}

// Processes of a machine that is up are killed when this process exits; a signal alone would leave them behind.
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) {
  process.once(signal, () => {
    process.exit(130);
  });
}

const output = createOutput();
try {
  await main(output);
} catch (error) {
  output.settle(asBacktalkError(error).message);
  process.exitCode = 2;
}
