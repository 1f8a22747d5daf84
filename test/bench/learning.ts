// `npm run bench:learning`: the curve of the running system, gateway in and weights out, for several users and seeds. It
// starts a fresh machine for each, lets the simulated user talk until the wanted version, and prints tables, the target's
// figures and two dozen answers as they are. A figure that is missed is printed as missed; nothing here is asserted.
import { spawn, type ChildProcess } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { parseArgs } from 'node:util';
import { inheritedEnvironment } from '@backtalk/kit';
import { root } from '../loop/machine.js';
import { readEvent, type Measured, type SeedRun } from './learning-events.js';
import { judgeRun, printRuns } from './learning-report.js';

const { values } = parseArgs({
  options: {
    users: { type: 'string', default: 'short' },
    seeds: { type: 'string', default: '1,2,3' },
    versions: { type: 'string', default: '12' },
    sessions: { type: 'string', default: '400' },
    questions: { type: 'string', default: '64' },
    samples: { type: 'string', default: '2' },
    port: { type: 'string', default: '33000' },
    keep: { type: 'boolean', default: false },
  },
});

const say = (line: string) => {
  process.stdout.write(`${line}\n`);
};

/** Resolves when the machine has said that it serves. */
async function startMachine(folder: string, seed: string): Promise<ChildProcess> {
  const machine = spawn(
    process.execPath,
    [join(root, 'deploy', 'start.mjs'), 'start', '--data', folder, '--port', values.port],
    {
      cwd: root,
      env: { ...inheritedEnvironment(), BACKTALK_SEED: seed },
      stdio: ['ignore', 'pipe', 'inherit'],
    },
  );
  for await (const line of createInterface({ input: machine.stdout })) {
    if (line.includes('Backtalk serves')) {
      machine.stdout.resume();
      return machine;
    }
  }
  throw new RangeError(`the machine for seed ${seed} did not start; its logs are in ${folder}`);
}

async function stopMachine(machine: ChildProcess): Promise<void> {
  const gone = new Promise((resolve) => machine.once('exit', resolve));
  machine.kill('SIGINT');
  await gone;
}

async function simulate(folder: string, user: string, seed: string): Promise<SeedRun> {
  const flags = ['--user', user, '--seed', seed, '--sessions', values.sessions, '--until-version', values.versions];
  const sizes = ['--questions', values.questions, '--samples', values.samples, '--print-answers', '24'];
  const command = join(root, 'services', 'cli', 'bin', 'backtalk.mjs');
  const startedAt = performance.now();
  const simulation = spawn(process.execPath, [command, '--json', '--data', folder, 'simulate', ...flags, ...sizes], {
    cwd: root,
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const rows: Measured[] = [];
  const answers: string[] = [];
  for await (const line of createInterface({ input: simulation.stdout })) {
    const event = readEvent(line);
    if (event?.event === 'measured') rows.push(event);
    if (event?.event === 'answer')
      answers.push(`${event.question} → ${event.answer.replaceAll('\n', ' ')}${event.ended ? '' : ' [cut]'}`);
  }
  return { user, seed, rows, answers, minutes: (performance.now() - startedAt) / 60_000 };
}

async function runSeed(user: string, seed: string): Promise<SeedRun> {
  const folder = mkdtempSync(join(tmpdir(), 'backtalk-learning-'));
  say(`${user}, seed ${seed}: starting a fresh machine in ${folder}`);
  const machine = await startMachine(folder, seed);
  try {
    return await simulate(folder, user, seed);
  } finally {
    await stopMachine(machine);
    if (!values.keep) rmSync(folder, { recursive: true, force: true });
  }
}

const runs: SeedRun[] = [];
for (const user of values.users.split(',')) {
  for (const seed of values.seeds.split(',')) {
    const run = await runSeed(user, seed);
    say(`${user}, seed ${seed}: ${judgeRun(run).summary} (${run.minutes.toFixed(0)} min)`);
    runs.push(run);
  }
}
printRuns(runs, say);
