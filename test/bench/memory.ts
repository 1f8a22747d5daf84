// Resident memory of every process of a real machine that has talked, judged, trained and swapped once.
import type { TestMachine } from '../loop/machine.js';
import type { Benchmark, BenchmarkContext, Figure, Measured } from './benchmark.js';
import { LearningTalk } from './learning-round.js';
import { residentOf } from './process-figures.js';
import { sum } from './statistics.js';

const services = ['gateway', 'collector', 'judge', 'trainer', 'publisher', 'loader'] as const;
const others = ['engine', 'training-worker', 'nats', 'valkey'] as const;

export const memory: Benchmark = {
  name: 'memory',
  about: 'resident memory of each process after some load',
  run: (context) =>
    context.machine({ engine: 'builtin', training: 'real' }, (machine) => measureMemory(context, machine)),
};

async function measureMemory(context: BenchmarkContext, machine: TestMachine): Promise<Measured> {
  const broker = await machine.broker();
  try {
    await new LearningTalk(machine, broker).round((progress) => {
      context.say(progress);
    });
    return report(machine);
  } finally {
    await broker.close();
  }
}

function report(machine: TestMachine): Measured {
  const resident = (name: string) => residentOf(machine.pid(name));
  const of = (names: readonly string[]) => names.map((name) => ({ name, ...resident(name) }));
  const six = of(services);
  const figure = (name: string, megabytes: number): Figure => ({ name, unit: 'MB', values: [megabytes] });
  const highest = sum(six.map(({ highestMegabytes }) => highestMegabytes));
  return {
    figures: [
      { ...figure('the six Node services together', sum(six.map(({ megabytes }) => megabytes))), aim: { atMost: 700 } },
      figure('the six together, the highest of each', highest),
      ...[...six, ...of(others)].map(({ name, megabytes }) => figure(name, megabytes)),
    ],
    notes: ['read once, right after a batch of real corrections was judged, trained on and swapped in'],
  };
}
