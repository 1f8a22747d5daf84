// `npm run test:soak`: a bad week in an hour. Clients talk without a pause while faults are drawn by chance, one or two at a
// time. After each the loop must answer and stage a new version again; at the end nothing may be lost, doubled or mixed up.
// No part of `npm test`: it takes as long as it is told. The last line is `N passed, N failed`.
import { asBacktalkError } from '@backtalk/kit';
import { createOutput } from '../bench/output.js';
import { residentOf } from '../bench/process-figures.js';
import { readWholeNumbers } from '../bench/whole-numbers.js';
import { audited } from '../loop/audited.js';
import { startCrowd } from '../loop/crowd.js';
import { LogBook } from '../loop/fact-log.js';
import { startTestMachine, type TestMachine } from '../loop/machine.js';
import { randomFrom } from '../loop/random.js';
import { calm, drawRound, runRound, type Round } from './rounds.js';

const help = `Usage: npm run test:soak -- [options]

Starts Backtalk with stand-ins for engine and training worker, lets clients talk, and draws faults by chance: processes
are killed or stand still, the engine lies, forgets and breaks off. After each the loop must answer and learn again.

  --minutes N   how long                     (default: 20)
  --seed N      of clients and of faults      (default: drawn, and printed)
  --clients N   clients that talk meanwhile   (default: 4)
  --calm        no faults: resident memory of each service after every half minute
  --keep        leave the data folder, with logs
  --help        this text`;

const services = ['gateway', 'collector', 'judge', 'trainer', 'publisher', 'loader', 'nats', 'valkey'] as const;
const output = createOutput();
const clock = (ms: number) => new Date(ms).toISOString().slice(11, 19);

interface Options {
  readonly minutes: number;
  readonly seed: number;
  readonly clients: number;
  readonly isCalm: boolean;
  readonly keep: boolean;
}

async function runAll({ minutes, seed, clients, isCalm, keep }: Options): Promise<void> {
  output.line(`--seed ${String(seed)}`);
  const machine = await startTestMachine({
    engine: 'stand-in',
    training: 'stand-in',
    pace: { tokenMs: 10, answerTokens: 12 },
    environment: {
      trainer: { BACKTALK_RECIPE_SET: 'effective=4,effectiveMin=4' },
      // Clients talk faster than the judge votes: it must keep up with what is fresh.
      judge: { BACKTALK_JUDGE_VERSIONS_BEHIND: '3' },
    },
  });
  output.line(`all parts serve; data and logs are in ${machine.folder}`);
  const book = await LogBook.open(machine);
  const crowd = startCrowd({ gateway: machine.gateway, seed, clients, optsOut: 0.1, streams: 0.7 });
  const random = randomFrom(seed);
  const rounds: Round[] = [];
  const endMs = Date.now() + 60_000 * minutes;
  try {
    while (Date.now() < endMs && (rounds.at(-1)?.problem ?? '') === '') {
      const drawn = isCalm ? calm : drawRound(random);
      output.progress(`${clock(Date.now())} ${drawn.name}`);
      const round = await runRound({ machine, book, crowd }, drawn);
      rounds.push(round);
      output.settle(`${clock(round.atMs)} ${round.problem === '' ? '✓' : '✗'} ${round.name}: ${figures(round)}`);
      if (isCalm) output.line(memoryOf(machine));
    }
    const ledger = await crowd.stop();
    const problems = await audited(book, ledger);
    for (const problem of problems) output.line(`✗ ${problem}`);
    output.line(`audit of ${String(ledger.length)} requests: ${String(problems.length)} problems`);
    conclude(rounds, problems.length);
  } finally {
    await book.close();
    await machine.stop({ keepFolder: keep || process.exitCode !== 0 });
  }
}

function figures({ answersSeconds, learnsSeconds, problem }: Round): string {
  if (problem !== '') return problem;
  return `answers after ${answersSeconds.toFixed(1)} s, a new version after ${learnsSeconds.toFixed(1)} s`;
}

function memoryOf(machine: TestMachine): string {
  const figures = services.map((name) => `${name} ${residentOf(machine.pid(name)).megabytes.toFixed(0)}`);
  return `resident, MB: ${figures.join(', ')}`;
}

function conclude(rounds: readonly Round[], problems: number): void {
  const failed = rounds.filter(({ problem }) => problem !== '').length + (problems === 0 ? 0 : 1);
  output.line(`${String(rounds.length + 1 - failed)} passed, ${String(failed)} failed`);
  process.exitCode = failed === 0 ? 0 : 1;
}

// Whoever stops it stops what it started, which ends with this process's own end.
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => process.exit(130));

try {
  const drawnSeed = 1 + Math.floor(Math.random() * 1_000_000);
  const { numbers, switches } = readWholeNumbers(process.argv.slice(2), {
    numbers: { minutes: 20, seed: drawnSeed, clients: 4 },
    switches: ['calm', 'keep', 'help'],
  });
  if (switches.has('help')) output.line(help);
  else await runAll({ ...numbers, isCalm: switches.has('calm'), keep: switches.has('keep') });
} catch (thrown) {
  const error = asBacktalkError(thrown);
  output.line(error.message);
  if (error.code !== 'bench_usage') output.line('0 passed, 1 failed');
  process.exitCode = error.code === 'bench_usage' ? 2 : 1;
}
