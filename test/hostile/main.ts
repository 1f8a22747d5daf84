// `npm run test:hostile`: every attack against a scratch installation, with the other client's latency beside it.
// No part of `npm test`: it takes minutes. The last line is `N passed, N failed`; an attack that reached its aim has failed.
import { parseArgs } from 'node:util';
import { asBacktalkError } from '@backtalk/kit';
import { createOutput } from '../bench/output.js';
import { percentile } from '../bench/statistics.js';
import type { Attack, Outcome } from './attack.js';
import { accessAttacks } from './attacks/access.js';
import { bodyAttacks } from './attacks/bodies.js';
import { partAttacks } from './attacks/parts.js';
import { wordAttacks } from './attacks/words.js';
import { startScene, type Scene } from './scene.js';

/** Each secret that a fault could have written is searched for at the end: the attacks by parts come last. */
const attacks: readonly Attack[] = [...bodyAttacks, ...accessAttacks, ...wordAttacks, ...partAttacks];

const help = `Usage: npm run test:hostile -- [options]

Attacks a scratch installation, one attack after the other, and prints what came of each: what it reached before there was
a bound, what happens now, and the latency of another tenant's client during it.

Options:
  --only NAME[,NAME…]  only these
  --json               the same as JSON on standard output; progress goes to standard error
  --help               this text

Attacks:
${attacks.map(({ name, about }) => `  ${name.padEnd(22)}${about}`).join('\n')}`;

interface Row extends Outcome {
  readonly name: string;
  readonly about: string;
  readonly before: string;
  /** Milliseconds of the other client's answers. */
  readonly p50: number;
  readonly p99: number;
  readonly calmP99: number;
  readonly answers: number;
  readonly failed: readonly string[];
}

const output = createOutput();
/** Answers of the other client that a percentile stands on. */
const answersMin = 200;
const calmMs = 8_000;

async function attackAll(chosen: readonly Attack[]): Promise<Row[]> {
  const rows: Row[] = [];
  for (const on of ['keyed', 'laptop'] as const) {
    const own = chosen.filter((attack) => attack.on === on);
    if (own.length === 0) continue;
    output.progress(`starting the installation: ${on}`);
    const scene = await startScene(on);
    try {
      await scene.noted();
      await new Promise((resolve) => setTimeout(resolve, calmMs));
      const calmP99 = percentile((await scene.noted()).answeredMs, 0.99);
      for (const attack of own) rows.push(await attackOnce(scene, attack, calmP99));
    } finally {
      await scene.stop();
    }
  }
  return rows;
}

async function attackOnce(scene: Scene, attack: Attack, calmP99: number): Promise<Row> {
  const { name, about, before } = attack;
  output.progress(`${name}: ${about}`);
  await scene.noted();
  const outcome = await attack.run(scene).catch((thrown: unknown): Outcome => {
    return { held: false, now: `the attack broke off: ${asBacktalkError(thrown).message}` };
  });
  const { answeredMs, failed } = await scene.noted();
  // An attack that held ends nothing; after one that did, the next meets a gateway that serves, where it comes back at all.
  if (!outcome.held) await scene.machine.serves('gateway').catch(() => undefined);
  const [p50, p99] = [percentile(answeredMs, 0.5), percentile(answeredMs, 0.99)];
  const row = { name, about, before, ...outcome, p50, p99, calmP99, answers: answeredMs.length, failed };
  output.settle(`${row.held ? '✓' : '✗'} ${name}: ${row.now}; ${latencyOf(row)}`);
  return row;
}

function latencyOf({ p50, p99, calmP99, answers, failed }: Row): string {
  const figures = `p50 ${p50.toFixed(0)} ms, p99 ${p99.toFixed(0)} ms (calm ${calmP99.toFixed(0)} ms)`;
  const few = answers < answersMin ? ` of ${String(answers)} answers` : '';
  return `${figures}${few}${failed.length === 0 ? '' : `, ${String(failed.length)} failed: ${failed[0] ?? ''}`}`;
}

function tableOf(rows: readonly Row[]): string {
  const cells = rows.map((row) => [row.held ? '✓' : '✗', row.name, row.before, row.now, latencyOf(row)]);
  const head = ['', 'attack', 'before', 'now', "the other client's latency"];
  return [head, head.map(() => '---'), ...cells].map((row) => `| ${row.join(' | ')} |`).join('\n');
}

function chosenBy(only: readonly string[]): readonly Attack[] {
  const names = only.flatMap((list) => list.split(','));
  const unknown = names.find((name) => !attacks.some((attack) => attack.name === name));
  if (unknown !== undefined) throw new RangeError(`There is no attack '${unknown}'; --help lists them.`);
  return names.length === 0 ? attacks : attacks.filter(({ name }) => names.includes(name));
}

for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => process.exit(130));

try {
  const { values } = parseArgs({
    options: {
      only: { type: 'string', multiple: true, default: [] },
      json: { type: 'boolean', default: false },
      help: { type: 'boolean', short: 'h', default: false },
    },
  });
  if (values.help) output.line(help);
  else {
    const rows = await attackAll(chosenBy(values.only));
    output.line(values.json ? JSON.stringify(rows, null, 2) : tableOf(rows));
    const failed = rows.filter(({ held }) => !held).length;
    output.line(`${String(rows.length - failed)} passed, ${String(failed)} failed`);
    process.exitCode = failed === 0 ? 0 : 1;
  }
} catch (thrown) {
  output.line(asBacktalkError(thrown).message);
  process.exitCode = 2;
}
