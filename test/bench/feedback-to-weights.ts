// From words to weights on the laptop's model: from the correction that fills a batch to the first answer of the version
// that learned from it. Everything is real: engine, judge, training worker, gate.
import type { TestMachine } from '../loop/machine.js';
import type { Benchmark, BenchmarkContext, Measured } from './benchmark.js';
import { LearningTalk, type LearningRound } from './learning-round.js';

const rounds = 3;

export const feedbackToWeights: Benchmark = {
  name: 'feedback',
  about: "from the correction that fills a batch to the new version's first answer",
  run: (context) =>
    context.machine({ engine: 'builtin', training: 'real' }, (machine) => measureFeedback(context, machine, rounds)),
};

async function measureFeedback(context: BenchmarkContext, machine: TestMachine, wanted: number): Promise<Measured> {
  const broker = await machine.broker();
  try {
    const talk = new LearningTalk(machine, broker);
    const found: LearningRound[] = [];
    for (let round = 1; round <= wanted; round += 1) {
      const say = (progress: string) => {
        context.say(`round ${round} of ${wanted}: ${progress}`);
      };
      found.push(await talk.round(say));
    }
    return report(found);
  } finally {
    await broker.close();
  }
}

function report(rounds: readonly LearningRound[]): Measured {
  const each = (valueOf: (round: LearningRound) => number) => rounds.map(valueOf);
  return {
    figures: [
      {
        name: 'feedback to served weights',
        unit: 's',
        aim: { atMost: 120 },
        values: each(({ answered }) => answered),
      },
      { name: 'of that, until the batch closed (judging)', unit: 's', values: each(({ closed }) => closed) },
      { name: 'of that, the step', unit: 's', values: each(({ trained, closed }) => trained - closed) },
      { name: 'of that, gate and swap', unit: 's', values: each(({ stable, trained }) => stable - trained) },
      { name: 'of that, the answer (48 tokens)', unit: 's', values: each(({ answered, stable }) => answered - stable) },
    ],
    notes: [
      `batches of 8 real corrections, ${rounds.map(({ version, corrections }) => `${version} of ${corrections} conversations`).join(', ')}`,
      'built-in engine and training worker with one thread each, batch closed by its eighth effective sample',
    ],
  };
}
