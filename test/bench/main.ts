// `npm run bench`: every figure that this repository promises to print, measured on this machine, in one table.
import { availableParallelism, cpus, loadavg } from 'node:os';
import { asBacktalkError } from '@backtalk/kit';
import { startTestMachine } from '../loop/machine.js';
import type { Benchmark, BenchmarkContext } from './benchmark.js';
import { benchmarks } from './benchmarks.js';
import { helpText, readOptions, type BenchOptions } from './options.js';
import { createOutput, type Output } from './output.js';
import { jsonOf, tableOf, type Outcome } from './report.js';

async function main(output: Output): Promise<void> {
  const { help, json, chosen } = readOptions(process.argv.slice(2), benchmarks);
  if (help) {
    output.line(helpText(benchmarks));
    return;
  }
  await measure({ help, json, chosen }, output);
}

async function measure({ json, chosen }: BenchOptions, output: Output): Promise<void> {
  const loadBefore = loadavg()[0] ?? Number.NaN;
  const outcomes: Outcome[] = [];
  for (const benchmark of chosen) outcomes.push(await outcomeOf(benchmark, output));
  const surroundings = {
    cpu: cpus()[0]?.model ?? 'an unknown CPU',
    cores: availableParallelism(),
    node: process.versions.node,
    loadBefore,
    loadAfter: loadavg()[0] ?? Number.NaN,
  };
  if (json) output.line(jsonOf(outcomes, surroundings));
  else for (const line of tableOf(outcomes, surroundings)) output.line(line);
}

async function outcomeOf(benchmark: Benchmark, output: Output): Promise<Outcome> {
  const { name } = benchmark;
  const startedAt = performance.now();
  const seconds = () => (performance.now() - startedAt) / 1_000;
  try {
    const measured = await benchmark.run(contextFor(name, output));
    output.settle(`✓ ${name}`);
    return { benchmark: name, seconds: seconds(), ...measured, failure: '' };
  } catch (thrown) {
    const { code, message } = asBacktalkError(thrown);
    const failure = code === 'internal' && thrown instanceof Error ? thrown.message : message;
    output.settle(`✗ ${name}: ${failure}`);
    return { benchmark: name, seconds: seconds(), figures: [], notes: [], failure };
  }
}

function contextFor(name: string, output: Output): BenchmarkContext {
  const say = (progress: string) => {
    output.progress(`${name}: ${progress}`);
  };
  return {
    say,
    machine: async (options, use) => {
      say('starting a machine');
      const machine = await startTestMachine(options);
      try {
        return await use(machine);
      } finally {
        await machine.stop();
      }
    },
  };
}

// Processes of a machine that is up are killed when this process exits; a signal alone would leave them behind.
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) {
  process.once(signal, () => {
    process.exit(130);
  });
}

const output = createOutput();
try {
  await main(output);
} catch (error) {
  output.settle(asBacktalkError(error).message);
  process.exitCode = 2;
}
