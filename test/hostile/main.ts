// `npm run test:hostile`: every attack against a scratch installation, with the other client's latency beside it.
// No part of `npm test`: it takes minutes. The last line is `N passed, N failed`; an attack that reached its aim has failed.
import { readFileSync, writeFileSync } from 'node:fs';
import { cpus, loadavg, totalmem } from 'node:os';
import { join, resolve } from 'node:path';
import { parseArgs } from 'node:util';
import type { ProcessSpec } from '@backtalk/deploy';
import { asBacktalkError } from '@backtalk/kit';
import { createOutput } from '../bench/output.js';
import { root } from '../loop/machine.js';
import type { Attack, Outcome } from './attack.js';
import { accessAttacks } from './attacks/access.js';
import { bodyAttacks } from './attacks/bodies.js';
import { partAttacks } from './attacks/parts.js';
import { within } from './attacks/shapes.js';
import { wordAttacks } from './attacks/words.js';
import { controlOf } from './control.js';
import { startCores } from './cores.js';
import { isHeld, latencyOf, summaryOf, tableOf, withTable, type CoresUsed, type Latency, type Row } from './report.js';
import { startScene, type Scene } from './scene.js';

/** Each secret that a fault could have written is searched for at the end: the attacks by parts come last. */
const attacks: readonly Attack[] = [...bodyAttacks, ...accessAttacks, ...wordAttacks, ...partAttacks];

const help = `Usage: npm run test:hostile -- [options]

Attacks a scratch installation, one attack after the other, and prints what came of each: what it reached before there was
a bound, what happens now, and the latency of another tenant's client during it.

Options:
  --only NAME[,NAME…]  only these
  --document           the table also into SECURITY.md, between its two marks
  --profile FOLDER     CPU profiles of all processes, there
  --json               the same as JSON on standard output; progress goes to standard error
  --help               this text

Attacks:
${attacks.map(({ name, about }) => `  ${name.padEnd(22)}${about}`).join('\n')}`;

const output = createOutput();
const takenInMs = 180_000;

async function attackAll(chosen: readonly Attack[], adapt: (spec: ProcessSpec) => ProcessSpec): Promise<Row[]> {
  const rows: Row[] = [];
  for (const on of ['keyed', 'replicated', 'keyless', 'laptop'] as const) {
    const own = chosen.filter((attack) => attack.on === on);
    if (own.length === 0) continue;
    output.progress(`starting the installation: ${on}`);
    const scene = await startScene(on, adapt);
    try {
      // Compilers go on improving code that has just begun to run; a model's answers take the same time from the first on.
      if (on !== 'laptop') await calmOf(scene);
      const calm = await calmOf(scene);
      for (const attack of own) rows.push(await attackPrepared(scene, attack, calm));
    } finally {
      await scene.stop();
    }
  }
  return rows;
}

/** Only the other client asks. */
interface Calm {
  readonly latency: Latency;
  readonly cores: CoresUsed;
}

async function calmOf(scene: Scene): Promise<Calm> {
  const cores = startCores(scene);
  await scene.noted();
  await scene.measured();
  const { answeredMs } = await scene.noted();
  return { latency: latencyOf(answeredMs), cores: cores() };
}

async function attackPrepared(scene: Scene, attack: Attack, calm: Calm): Promise<Row> {
  if (attack.prepare === undefined) return attackOnce(scene, attack, calm);
  const restore = await attack.prepare(scene);
  try {
    return await attackOnce(scene, attack, await calmOf(scene));
  } finally {
    await restore();
  }
}

async function attackOnce(scene: Scene, attack: Attack, calm: Calm): Promise<Row> {
  const { name, about, before, unmeasured } = attack;
  output.progress(`${name}: ${about}`);
  // Turns are taken in in the order of the log: what the attack before has left there would be measured with this one.
  await within(takenInMs, () => scene.book.isTakenIn());
  const cores = startCores(scene);
  await scene.noted();
  const outcome = await attack.run(scene).catch((thrown: unknown): Outcome => {
    return { held: false, now: `the attack broke off: ${asBacktalkError(thrown).message}` };
  });
  const { answeredMs, failed } = await scene.noted();
  const used = cores();
  // An attack that held ends nothing; after one that did, the next meets a gateway that serves, where it comes back at all.
  if (!outcome.held) await scene.machine.serves('gateway').catch(() => undefined);
  const control = unmeasured === undefined ? await controlOf(scene, used, calm.cores) : calm.latency;
  const latency = { calm: calm.latency, attacked: latencyOf(answeredMs), control, cores: used, failed };
  const row: Row = { name, about, before, unmeasured, ...outcome, ...latency };
  output.settle(summaryOf(row));
  return row;
}

function chosenBy(only: readonly string[]): readonly Attack[] {
  const names = only.flatMap((list) => list.split(','));
  const unknown = names.find((name) => !attacks.some((attack) => attack.name === name));
  if (unknown !== undefined) throw new RangeError(`There is no attack '${unknown}'; --help lists them.`);
  return names.length === 0 ? attacks : attacks.filter(({ name }) => names.includes(name));
}

function writeDocument(rows: readonly Row[], load: number): void {
  const path = join(root, 'SECURITY.md');
  const [processor] = cpus();
  const gibibytes = Math.round(totalmem() / 2 ** 30);
  const date = new Date().toISOString().slice(0, 10);
  const machine = `${String(cpus().length)} cores (${processor?.model ?? ''}), ${String(gibibytes)} GiB, Node ${process.version}`;
  const text = `${tableOf(rows)}\n\nMeasured on ${date} on one machine with ${machine}; attacker, installation and both clients share it. Its load average before was ${load.toFixed(1)}.`;
  writeFileSync(path, withTable(readFileSync(path, 'utf8'), text));
}

/** Has every Node process write a CPU profile when it ends. */
function profiled(folder: string): (spec: ProcessSpec) => ProcessSpec {
  const flags = ['--cpu-prof', '--cpu-prof-interval=500', `--cpu-prof-dir=${resolve(folder)}`];
  return (spec) =>
    folder === '' || spec.command !== process.execPath ? spec : { ...spec, args: [...flags, ...spec.args] };
}

for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => process.exit(130));

try {
  const { values } = parseArgs({
    options: {
      only: { type: 'string', multiple: true, default: [] },
      document: { type: 'boolean', default: false },
      profile: { type: 'string', default: '' },
      json: { type: 'boolean', default: false },
      help: { type: 'boolean', short: 'h', default: false },
    },
  });
  if (values.help) output.line(help);
  else {
    const [load = 0] = loadavg();
    const rows = await attackAll(chosenBy(values.only), profiled(values.profile));
    if (values.document) writeDocument(rows, load);
    output.line(values.json ? JSON.stringify(rows, null, 2) : tableOf(rows));
    const failed = rows.filter((row) => !isHeld(row)).length;
    output.line(`${String(rows.length - failed)} passed, ${String(failed)} failed`);
    process.exitCode = failed === 0 ? 0 : 1;
  }
} catch (thrown) {
  output.line(asBacktalkError(thrown).message);
  process.exitCode = 2;
}
