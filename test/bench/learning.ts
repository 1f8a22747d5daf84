// `npm run bench:learning`: does the running system learn wishes, keep them, and learn nothing where nobody teaches? Gateway in,
// weights out: simulated users talk, and versions answer questions that nobody asked them. A figure that is missed is written
// as missed; nothing here is asserted.
import { createHash } from 'node:crypto';
import { createReadStream, existsSync, readdirSync } from 'node:fs';
import { loadavg } from 'node:os';
import { join } from 'node:path';
import { pipeline } from 'node:stream/promises';
import { askTorch, baseModel, trainingDevice, type TrainingDevice } from '@backtalk/deploy';
import { asBacktalkError, givenUpBy, sha256Hex } from '@backtalk/kit';
import { recipePresets } from '@backtalk/trainer/recipe';
import { root } from '../loop/machine.js';
import { benchErrors } from './errors.js';
import { writeDocument } from './learning/document.js';
import { helpText, readPlan, type LearningPlan } from './learning/options.js';
import { unitsOf, type Found, type Unit } from './learning/parts.js';
import { ranOn, ResultStore, type UnitResult } from './learning/result.js';
import { createOutput, type Output } from './output.js';

const laptopModel = join(root, '.venv', 'models', baseModel);
const load = () => loadavg()[0] ?? Number.NaN;

async function main(output: Output): Promise<void> {
  const plan = readPlan(process.argv.slice(2));
  if (plan.help) {
    output.line(helpText);
    return;
  }
  const device = await deviceOf(plan);
  // Results of steps on a card stand apart: bytes and seconds are others.
  const digest = `${await digestOf(plan.model ?? laptopModel)}${device?.device === 'cuda' ? '.cuda' : ''}`;
  const store = new ResultStore(join(plan.results, folderOf(plan, digest)));
  const [weights = '', recipe = ''] = digest.split('.');
  const model = plan.model === undefined ? 'of the laptop' : 'named by `--model`';
  const about = `Base model ${model} (weights \`${weights}\`), recipe \`${recipe}\``;
  for (const unit of unitsOf(plan, store, device)) {
    if (store.find(unit) === undefined) await runUnit(unit, store, output, device);
    else output.settle(`${titleOf(unit)}: kept from before`);
    writeDocument(plan, measuredAlike(plan, digest), about);
  }
  writeDocument(plan, measuredAlike(plan, digest), about);
  if (plan.json) output.line(JSON.stringify(store.all(), null, 2));
  else output.settle(`figures and pictures: ${plan.document}`);
}

const deviceOf = async ({ device }: LearningPlan) =>
  device === undefined ? undefined : trainingDevice(device, undefined, () => askTorch(root));

const titleOf = ({ part, name, seed }: Unit) => `(${part}) ${name}, seed ${String(seed)}`;

/** A unit that fails leaves no result; the others go on. */
async function runUnit(unit: Unit, store: ResultStore, output: Output, device?: TrainingDevice): Promise<void> {
  const { part, name, seed } = unit;
  const [startedAt, before] = [performance.now(), load()];
  const say = (progress: string) => {
    output.progress(`${titleOf(unit)}: ${progress}`);
  };
  try {
    const found = await unit.run(say);
    checkTrained(found);
    const minutes = (performance.now() - startedAt) / 60_000;
    const result: UnitResult = {
      part,
      name,
      seed,
      ...found,
      minutes,
      load: [before, load()],
      stopped: false,
      ...ranOn(device),
    };
    store.keep(result);
    output.settle(`✓ ${titleOf(unit)}: ${summaryOf(result)}`);
  } catch (error) {
    const { code, message } = asBacktalkError(error);
    output.settle(`✗ ${titleOf(unit)}: ${code === 'internal' && error instanceof Error ? error.message : message}`);
    process.exitCode = 1;
  }
}

/** Where steps were given up and none made a version, what was measured is the base: a fault of the set-up, and no result. */
function checkTrained({ steps }: Found): void {
  const [failed] = steps.filter(({ stage }) => givenUpBy.has(stage));
  if (failed === undefined || steps.some(({ stage }) => stage !== 'begun' && !givenUpBy.has(stage))) return;
  const { stage, why } = failed;
  throw benchErrors.nothingTrained({ steps: steps.length, why: `${stage} ${why}` });
}

function summaryOf({ rows, minutes }: UnitResult): string {
  const headlines = rows.map(({ of, name, scores }) => `${of} ${name} ${scores.headline.toFixed(2)}`);
  return `${headlines.join(' · ')} (${minutes.toFixed(0)} min)`;
}

/** Numbers that these recipes have no use for change no result, nor does a preset that is not measured. */
const unused: ReadonlySet<string> = new Set(['emaDecay', 'stepReward', 'groupWaitMs', 'onlyTemperature', 'remote']);

/** Of a model's weights, and of its recipe as it is: results of different ones are never compared. */
async function digestOf(model: string): Promise<string> {
  const hash = createHash('sha256');
  await pipeline(createReadStream(join(model, 'model.safetensors')), hash);
  const { tiny, small } = recipePresets;
  const used = model === laptopModel ? tiny.recipe : small.recipe;
  const named = JSON.stringify(used, (key, value: unknown) => (unused.has(key) ? undefined : value));
  const recipe = sha256Hex(named).slice(0, 6);
  return `${hash.digest('hex').slice(0, 12)}.${recipe}`;
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
