// `npm run test:vllm`: the whole loop with a real vLLM as its serving engine, on the laptop's model. No part of `npm test`:
// it installs 2.5 GB, and takes ten minutes on two idle cores and longer on busy ones. Exercises run one after another on one
// machine; a summary tells what holds, with figures; the last line is `N passed, N failed`.
import { asBacktalkError } from '@backtalk/kit';
import { createOutput } from '../bench/output.js';
import { readWholeNumbers } from '../bench/whole-numbers.js';
import { audited } from '../loop/audited.js';
import type { Exercise, Finding, Scene } from './exercise.js';
import { flagsAreKnown } from './flags.js';
import { logprobsAgree } from './logprobs.js';
import { restartUnderLoad } from './restart.js';
import { openScene } from './scene.js';
import { swapsUnderLoad } from './swaps.js';

const help = `Usage: npm run test:vllm -- [options]

Installs vLLM for CPU beside Backtalk, and runs the whole loop with it: swaps under load, logprobs of engine and trainer,
an engine that is killed and comes back.

  --swaps N     swaps under load             (default: 10)
  --clients N   clients that talk meanwhile  (default: 4)
  --minutes N   for all swaps together       (default: 60)
  --keep        leave the data folder, with logs
  --help        this text`;

const answerTokens = 12;
const seed = 11;
const output = createOutput();

interface Options {
  readonly swaps: number;
  readonly clients: number;
  readonly minutes: number;
  readonly keep: boolean;
}

async function runAll({ swaps, clients, minutes, keep }: Options): Promise<void> {
  output.progress('vLLM and all other parts start');
  const scene = await openScene(output);
  output.settle(`all parts serve; data and logs are in ${scene.machine.folder}`);
  const findings: Finding[] = [];
  const exercises: readonly (readonly [string, Exercise])[] = [
    ['flags of the chart and of Compose', flagsAreKnown],
    ['swaps under load', swapsUnderLoad({ swaps, clients, maxTokens: answerTokens, seed, withinMinutes: minutes })],
    ['logprobs of engine and trainer', logprobsAgree],
    ['the engine is killed and comes back', restartUnderLoad],
    ['audit', auditAll],
  ];
  try {
    for (const [name, exercise] of exercises) findings.push(...(await runOne(name, exercise, scene)));
  } finally {
    await scene.book.close();
    await scene.machine.stop({ keepFolder: keep });
  }
  const failed = findings.filter(({ holds }) => !holds).length;
  for (const { what, holds, figure } of findings) output.line(`${holds ? '✓' : '✗'} ${what}: ${figure}`);
  output.line(`${String(findings.length - failed)} passed, ${String(failed)} failed`);
  process.exitCode = failed === 0 ? 0 : 1;
}

/** An exercise that cannot be taken to its end is one that failed; the others go on. */
async function runOne(name: string, exercise: Exercise, scene: Scene): Promise<readonly Finding[]> {
  output.settle(`▶ ${name}`);
  try {
    const findings = await exercise(scene);
    for (const { what, holds, figure } of findings) output.settle(`  ${holds ? '✓' : '✗'} ${what}: ${figure}`);
    return findings;
  } catch (thrown) {
    const finding = { what: name, holds: false, figure: asBacktalkError(thrown).message };
    output.settle(`  ✗ ${finding.figure}`);
    return [finding];
  }
}

const auditAll: Exercise = async ({ book, ledger }) => {
  const problems = await audited(book, ledger);
  const figure = problems.length === 0 ? `${String(ledger.length)} requests` : problems.slice(0, 3).join('; ');
  return [{ what: 'nothing is lost, doubled or mixed up', holds: problems.length === 0, figure }];
};

// Whoever stops it stops what it started, which ends with this process's own end.
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => process.exit(130));

try {
  const { numbers, switches } = readWholeNumbers(process.argv.slice(2), {
    numbers: { swaps: 10, clients: 4, minutes: 60 },
    switches: ['keep', 'help'],
  });
  if (switches.has('help')) output.line(help);
  else await runAll({ ...numbers, keep: switches.has('keep') });
} catch (thrown) {
  const error = asBacktalkError(thrown);
  output.line(error.message);
  if (error.code !== 'bench_usage') output.line('0 passed, 1 failed');
  process.exitCode = error.code === 'bench_usage' ? 2 : 1;
}
