// `npm run test:alerts`: every alert of the chart is fired by a real fault on a scratch installation, before a real Prometheus,
// and cleared again. No part of `npm test`: it takes minutes. The last line is `N passed, N failed`.
import { parseArgs } from 'node:util';
import { asBacktalkError } from '@backtalk/kit';
import { createOutput } from '../bench/output.js';
import { prometheusAbsent } from '../observability/prometheus.js';
import { timesFaster } from './faster.js';
import { nameOf, type Expected } from './fault.js';
import { scenes } from './scenes.js';
import { tryFault, type Row } from './try-fault.js';

const output = createOutput();
const all = scenes.flatMap(({ faults }) =>
  faults.flatMap(({ fault, fires }) => fires.map((one) => ({ ...one, fault }))),
);

const help = `Usage: npm run test:alerts -- [options]

Starts Backtalk and a Prometheus that scrapes it with the chart's labels and has the chart's rules, in which time runs ${String(timesFaster)} times
faster. Breaks one thing after the other, waits for the alert, mends it, and waits until the alert is gone.

Options:
  --only NAME[,NAME…]  only these alerts; NAME/LABEL is one of those that an alert fires for each value of a label
  --json               the same as JSON on standard output; progress goes to standard error
  --help               this text

Alerts:
${all.map((one) => `  ${nameOf(one).padEnd(39)}${one.fault}`).join('\n')}`;

async function tryAll(isChosen: (expected: Expected) => boolean): Promise<Row[]> {
  const rows: Row[] = [];
  for (const { name, start, faults } of scenes) {
    const own = faults
      .map((fault) => ({ ...fault, fires: fault.fires.filter(isChosen) }))
      .filter(({ fires }) => fires.length > 0);
    if (own.length === 0) continue;
    output.progress(`starting the installation: ${name}`);
    const scene = await start();
    try {
      for (const fault of own) {
        output.progress(fault.fault);
        const tried = await tryFault(scene, fault);
        rows.push(...tried);
        for (const row of tried) output.settle(`${row.problem === '' ? '✓' : '✗'} ${lineOf(row).join(', ')}`);
      }
    } finally {
      await scene.stop();
    }
  }
  return rows;
}

function lineOf({ fault, firedSeconds, clearedSeconds, also, problem, ...expected }: Row): string[] {
  const seconds = (value: number | undefined) => (value === undefined ? '—' : `${value.toFixed(0)} s`);
  return [nameOf(expected), fault, seconds(firedSeconds), seconds(clearedSeconds), also.join(' '), problem];
}

function tableOf(rows: readonly Row[]): string {
  const head = ['', 'alert', 'fault', 'fired after', 'cleared after', 'fired as well', 'problem'];
  const cells = rows.map((row) => [row.problem === '' ? '✓' : '✗', ...lineOf(row)]);
  return [head, head.map(() => '---'), ...cells].map((row) => `| ${row.join(' | ')} |`).join('\n');
}

function chosenBy(only: readonly string[]): (expected: Expected) => boolean {
  const names = only.flatMap((list) => list.split(','));
  const known = all.flatMap((expected) => [expected.alert, nameOf(expected)]);
  const unknown = names.find((name) => !known.includes(name));
  if (unknown !== undefined) throw new RangeError(`There is no fault for the alert '${unknown}'; --help lists them.`);
  return (expected) => names.length === 0 || [expected.alert, nameOf(expected)].some((name) => names.includes(name));
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
  const absent = prometheusAbsent();
  if (values.help) output.line(help);
  else if (absent !== undefined) throw new RangeError(`There is no Prometheus here: ${absent}`);
  else {
    const rows = await tryAll(chosenBy(values.only));
    output.line(values.json ? JSON.stringify({ rows }, null, 2) : tableOf(rows));
    const failed = rows.filter(({ problem }) => problem !== '').length;
    output.line(`${String(rows.length - failed)} passed, ${String(failed)} failed`);
    process.exitCode = failed === 0 ? 0 : 1;
  }
} catch (thrown) {
  output.line(asBacktalkError(thrown).message);
  process.exitCode = 2;
}
