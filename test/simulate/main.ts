// `npx backtalk simulate`: a seeded user talks through the gateway, and every version is measured on questions it never asks.
import { createShell, endpointClient, stopSignal, whole, type CommandContext } from '@backtalk/cli';
import { createEngineClient } from '@backtalk/dialects';
import { LearningRest } from './learning-rest.js';
import { printCurve, printTable } from './learning-table.js';
import { callsLine, openParties, type Parties, type PartyFlags } from './parties.js';
import { Simulation, type SimulationResult } from './simulate.js';

interface SimulateFlags extends PartyFlags {
  readonly sessions: number;
  readonly untilVersion?: number;
  readonly turns?: number;
  readonly parallel: number;
  readonly maxTokens?: number;
  readonly samples: number;
  readonly printAnswers: number;
}

const temperature = 0.8;
const measureParallel = 16;
const klAnswers = 32;

function simulation(
  context: CommandContext,
  flags: SimulateFlags,
  parties: Parties,
  learning: LearningRest,
): Simulation {
  const { connection, output, apiKey, signal } = context;
  const { turns = parties.usual.turns, maxTokens = parties.usual.maxTokens } = flags;
  return new Simulation({
    client: endpointClient(connection.endpoint, apiKey),
    engine: createEngineClient({ dialect: 'vllm', url: connection.engine, apiKey: connection.engineKey }),
    engineBase: connection.baseModel,
    policy: connection.policy,
    user: parties.user,
    scorer: parties.scorer,
    hint: parties.wish,
    klAnswers,
    output,
    signal,
    repliesMax: turns - 1,
    sessions: flags.sessions,
    rest: (resting) => learning.set(resting),
    untilVersion: flags.untilVersion,
    parallelSessions: flags.parallel,
    maxTokens,
    measure: {
      questions: parties.heldOut,
      samples: flags.samples,
      maxTokens,
      temperature,
      parallel: measureParallel,
    },
  });
}

function report(
  { output }: CommandContext,
  { rows, counts, lastAnswers }: SimulationResult,
  models: Parties['models'],
  answersToPrint: number,
): void {
  const calls = Object.entries(models).map(([whose, model]) => [whose, model.counts] as const);
  output.value({ event: 'done', counts, ...(calls.length === 0 ? {} : { models: Object.fromEntries(calls) }) });
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
  for (const [whose, model] of Object.entries(models))
    output.line(callsLine(`the ${whose}'s model`, model.counts, model.takesSeed));
  for (const { question, answer, ended } of lastAnswers.slice(0, answersToPrint)) {
    output.value({ event: 'answer', question, answer, ended });
    output.line(`  ${question} → ${answer.replaceAll('\n', ' ')}${ended ? '' : ' [cut]'}`);
  }
  output.line('From which words: npx backtalk versions');
}

async function runSimulation(context: CommandContext, flags: SimulateFlags): Promise<void> {
  const { signal, output, connection } = context;
  const parties = await openParties(flags, signal, output);
  const learning = new LearningRest(connection);
  // A second Ctrl-C ends the process at once, and a broker may be gone by then.
  process.once('exit', () => {
    if (learning.leftToDo !== '') output.complain(learning.leftToDo);
  });
  try {
    const found = await simulation(context, flags, parties, learning).run();
    report(context, found, parties.models, flags.printAnswers);
  } finally {
    await parties.stop();
  }
}

const description = 'Let a seeded, simulated user talk, and watch held-out scores version by version.';
const { program, run } = createShell('backtalk simulate', description, stopSignal());
const aboutPersonas = `
A persona is played by a model behind any OpenAI-compatible endpoint, which reads each answer, says in its own words what is
wrong, and ends the session once it is satisfied. Another model scores first answers to held-out tasks from 0 to 1 on the
persona's scale. Both must be able to do that: the laptop's model is too small to play, to score, or to learn a persona.
A key is the one line of a file that only you can read.`;
await program
  .option('--user <name|file>', 'who talks: one of test/simulate/users, or a JSON file of that form (default: short)')
  .option('--persona <name|file>', 'a model talks as student, ta, teacher, or a JSON file of that form')
  .option('--llm-url <url>', 'where the model that plays the persona is served')
  .option('--llm-model <name>', 'its name there, where there are several')
  .option('--llm-key-file <file>', 'file with the key for it')
  .option('--scorer-url <url>', 'where a model is served that scores in place of rule and embeddings')
  .option('--scorer-model <name>', 'its name there, where there are several')
  .option('--scorer-key-file <file>', 'file with the key for it')
  .option('--same-model', 'one model may play and score')
  .option('--turns <n>', 'messages of the user in a session, at most (default: 2, of a persona 4)', whole(1))
  .option('--sessions <n>', 'sessions to hold', whole(1), 200)
  .option('--until-version <n>', 'stop once this version has been measured', whole(1))
  .option('--seed <n>', 'seed of the user', whole(0), 1)
  .option('--parallel <n>', 'sessions at the same time', whole(1), 4)
  .option('--max-tokens <n>', 'longest answer in tokens (default: 48, to a persona 512)', whole(1))
  .option(
    '--questions <n>',
    'held-out questions to measure with, in blocks of 32 (default: 32, or what the user has)',
    whole(0),
  )
  .option('--samples <n>', 'answers to each held-out question', whole(1), 1)
  .option('--print-answers <n>', 'answers of the last version to print', whole(0), 6)
  .addHelpText('after', aboutPersonas)
  .action((flags: SimulateFlags) => run((context) => runSimulation(context, flags)))
  .parseAsync(process.argv);
