// What the command line asks for. In: arguments and the names of all benchmarks. Out: options, or a refusal.
import { parseArgs } from 'node:util';
import type { Benchmark } from './benchmark.js';
import { benchErrors } from './errors.js';

export interface BenchOptions {
  readonly help: boolean;
  readonly json: boolean;
  readonly chosen: readonly Benchmark[];
}

export function readOptions(argv: readonly string[], all: readonly Benchmark[]): BenchOptions {
  const { help, json, only } = parse(argv);
  const names = only.flatMap((list) => list.split(',')).map((name) => name.trim());
  const unknown = names.find((name) => !all.some((benchmark) => benchmark.name === name));
  if (unknown !== undefined) throw benchErrors.usage({ why: `There is no benchmark '${unknown}'.` });
  const chosen = names.length === 0 ? all : all.filter(({ name }) => names.includes(name));
  return { help, json, chosen };
}

function parse(argv: readonly string[]) {
  try {
    const { values } = parseArgs({
      args: [...argv],
      options: {
        help: { type: 'boolean', short: 'h', default: false },
        json: { type: 'boolean', default: false },
        only: { type: 'string', multiple: true, default: [] },
      },
    });
    return values;
  } catch (error) {
    throw benchErrors.usage({ why: error instanceof Error ? error.message : String(error) }, error);
  }
}

export function helpText(all: readonly Benchmark[]): string {
  const width = Math.max(...all.map(({ name }) => name.length));
  return `Usage: npm run bench -- [options]

Measures this machine and prints one table with medians and ranges. Nothing is asserted: an aim that is missed is
printed as missed, and a benchmark that cannot be run says why while the others go on.

Options:
  --only NAME[,NAME…]  only these
  --json               the same as JSON on standard output; progress goes to standard error
  --help               this text

Benchmarks:
${all.map(({ name, about }) => `  ${name.padEnd(width)}  ${about}`).join('\n')}`;
}
