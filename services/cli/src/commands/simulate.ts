// `simulate`: a seeded user talks through the gateway, and every version is measured on questions it never asked.
import { join, resolve } from 'node:path';
import { createEngineClient } from '@backtalk/dialects';
import type { CommandContext } from '../context.js';
import { endpointClient } from '../endpoint.js';
import { switchLearning } from './learning.js';
import { heldOutQuestions } from '../simulate/scorer/held-out-questions.js';
import { startScorer } from '../simulate/scorer/scorer-process.js';
import { printCurve, printTable } from '../simulate/run/learning-table.js';
import { Simulation, type AnswerScorer, type SimulationResult } from '../simulate/run/simulate.js';
import { Random } from '../simulate/user/random.js';
import { ShortUser } from '../simulate/user/short-user.js';

export interface SimulateFlags {
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

const hint = 'Answer in one short sentence.';
const temperature = 0.8;
const measureParallel = 16;
const klAnswers = 32;
const repliesMax = 1;

function simulation(context: CommandContext, flags: SimulateFlags, scorer: AnswerScorer | undefined): Simulation {
  const { connection, output, apiKey } = context;
  return new Simulation({
    client: endpointClient(connection.endpoint, apiKey),
    engine: createEngineClient({ dialect: 'vllm', url: connection.engine }),
    engineBase: connection.baseModel,
    policy: connection.policy,
    user: new ShortUser(new Random(flags.seed)),
    scorer,
    hint,
    klAnswers,
    output,
    repliesMax,
    sessions: flags.sessions,
    rest: (resting) => switchLearning(connection, resting),
    untilVersion: flags.untilVersion,
    parallelSessions: flags.parallel,
    maxTokens: flags.maxTokens,
    measure: {
      questions: heldOutQuestions.slice(0, flags.questions),
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

export async function runSimulation(context: CommandContext, flags: SimulateFlags): Promise<void> {
  const scorer = flags.questions === 0 ? undefined : await startScorer(join(resolve(context.venv), 'bin', 'python'));
  try {
    report(context, await simulation(context, flags, scorer).run(context.signal), flags.printAnswers);
  } finally {
    await scorer?.stop();
  }
}
