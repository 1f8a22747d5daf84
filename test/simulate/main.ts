// `npx backtalk simulate`: a seeded user talks through the gateway, and every version is measured on questions it never asks.
import { createShell, endpointClient, stopSignal, switchLearning, whole, type CommandContext } from '@backtalk/cli';
import { createEngineClient } from '@backtalk/dialects';
import { printCurve, printTable } from './learning-table.js';
import { startScorer } from './scorer/scorer-process.js';
import { Simulation, type AnswerScorer, type SimulationResult } from './simulate.js';
import { Random } from './user/random.js';
import { SimulatedUser } from './user/simulated-user.js';
import { readUser, type UserFile } from './user/user-file.js';

interface SimulateFlags {
  readonly user: string;
  readonly sessions: number;
  readonly untilVersion?: number;
  readonly seed: number;
  readonly parallel: number;
  readonly maxTokens: number;
  readonly questions: number;
  readonly samples: number;
  readonly printAnswers: number;
}

const temperature = 0.8;
const measureParallel = 16;
const klAnswers = 32;
const repliesMax = 1;

function simulation(
  context: CommandContext,
  flags: SimulateFlags,
  file: UserFile,
  scorer: AnswerScorer | undefined,
): Simulation {
  const { connection, output, apiKey } = context;
  return new Simulation({
    client: endpointClient(connection.endpoint, apiKey),
    engine: createEngineClient({ dialect: 'vllm', url: connection.engine, apiKey: connection.engineKey }),
    engineBase: connection.baseModel,
    policy: connection.policy,
    user: new SimulatedUser(file, new Random(flags.seed)),
    scorer,
    hint: file.wish,
    klAnswers,
    output,
    repliesMax,
    sessions: flags.sessions,
    rest: (resting) => switchLearning(connection, resting),
    untilVersion: flags.untilVersion,
    parallelSessions: flags.parallel,
    maxTokens: flags.maxTokens,
    measure: {
      questions: file.questions.heldout.slice(0, flags.questions),
      samples: flags.samples,
      maxTokens: flags.maxTokens,
      temperature,
      parallel: measureParallel,
    },
  });
}

function report(
  { output }: CommandContext,
  { rows, counts, lastAnswers }: SimulationResult,
  answersToPrint: number,
): void {
  output.value({ event: 'done', counts });
  output.line('');
  printTable(output, [
    ...rows.filter(({ kind }) => kind === 'comparison'),
    ...rows.filter(({ kind }) => kind === 'version'),
  ]);
  printCurve(output, rows);
  output.line('');
  output.line(
    `${String(counts.sessions)} sessions, ${String(counts.answers)} answers: ${String(counts.corrected)} corrected, ${String(counts.complained)} called nonsense, ${String(counts.praised)} praised`,
  );
  for (const { question, answer, ended } of lastAnswers.slice(0, answersToPrint)) {
    output.value({ event: 'answer', question, answer, ended });
    output.line(`  ${question} → ${answer.replaceAll('\n', ' ')}${ended ? '' : ' [cut]'}`);
  }
  output.line('From which words: npx backtalk versions');
}

async function runSimulation(context: CommandContext, flags: SimulateFlags): Promise<void> {
  const file = readUser(flags.user);
  const scorer = flags.questions === 0 ? undefined : await startScorer(file.rule);
  try {
    report(context, await simulation(context, flags, file, scorer).run(context.signal), flags.printAnswers);
  } finally {
    await scorer?.stop();
  }
}

const description = 'Let a seeded, simulated user talk, and watch held-out scores version by version.';
const { program, run } = createShell('backtalk simulate', description, stopSignal());
await program
  .option('--user <name|file>', 'who talks: one of test/simulate/users, or a JSON file of that form', 'short')
  .option('--sessions <n>', 'sessions to hold', whole(1), 200)
  .option('--until-version <n>', 'stop once this version has been measured', whole(1))
  .option('--seed <n>', 'seed of the user', whole(0), 1)
  .option('--parallel <n>', 'sessions at the same time', whole(1), 4)
  .option('--max-tokens <n>', 'longest answer in tokens', whole(1), 48)
  .option('--questions <n>', 'held-out questions to measure with, in blocks of 32', whole(0), 32)
  .option('--samples <n>', 'answers to each held-out question', whole(1), 1)
  .option('--print-answers <n>', 'answers of the last version to print', whole(0), 6)
  .action((flags: SimulateFlags) => run((context) => runSimulation(context, flags)))
  .parseAsync(process.argv);
