// One training step on a sample as long as agents' prompts make them, beside what is reckoned for it: long_step.py measures, the
// arithmetic is that of `backtalk fit`.
import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { inheritedEnvironment, modelConfig, sampleBytes, stepBytes } from '@backtalk/kit';
import { z } from 'zod';
import { root } from '../loop/machine.js';
import type { Benchmark, Figure, Measured } from './benchmark.js';
import { benchErrors } from './errors.js';

const program = join('test', 'bench', 'long_step.py');
/** On a busy core the longest takes half an hour. */
const withinMs = 3_600_000;
const answerTokens = 200;
const float32Bytes = 4;

const step = z.object({
  tokens: z.number(),
  seconds: z.number(),
  cpu_seconds: z.number(),
  loaded_bytes: z.number(),
  peak_bytes: z.number(),
  bound_passes: z.number(),
  rank: z.number(),
  config: modelConfig,
});
export type LongStep = z.infer<typeof step>;

interface Case {
  readonly name: string;
  readonly tokens: number;
  readonly args: readonly string[];
  readonly aims?: { readonly seconds: number; readonly gigabytes: number };
}

const cases: readonly Case[] = [
  { name: "the laptop's model", tokens: 10_000, args: [], aims: { seconds: 300, gigabytes: 3 } },
  { name: "a made model of six of Qwen3-0.6B's layers", tokens: 8_000, args: ['--shape', 'wide'] },
];

export const longStep: Benchmark = {
  name: 'long-step',
  about: 'one training step on a sample of 10,000 tokens, and its memory beside the arithmetic',
  run: async (context) => {
    const measured: Measured[] = [];
    for (const one of cases) {
      context.say(`${String(one.tokens)} tokens of ${one.name}`);
      measured.push(reportOf(one, await measure(one)));
    }
    return {
      figures: measured.flatMap(({ figures }) => figures),
      notes: measured.flatMap(({ notes }) => notes),
    };
  },
};

async function measure({ tokens, args }: Case): Promise<LongStep> {
  const python = join(root, '.venv', 'bin', 'python');
  const lengths = ['--prompt', String(tokens - answerTokens), '--answer', String(answerTokens)];
  const options = { cwd: root, env: inheritedEnvironment(), timeout: withinMs };
  try {
    const words = ['-W', 'ignore', program, '--json', ...lengths, ...args];
    const { stdout } = await promisify(execFile)(python, words, options);
    return step.parse(JSON.parse(stdout));
  } catch (error) {
    const output = error instanceof Error ? (error.message.trim().split('\n').at(-1) ?? '') : String(error);
    throw benchErrors.programFailed({ program, output }, error);
  }
}

export function reportOf({ name, aims }: Pick<Case, 'name' | 'aims'>, found: LongStep): Measured {
  const reckoned = stepBytes(found.config, found.rank) + sampleBytes(found.config, found.tokens, float32Bytes);
  const took = found.peak_bytes - found.loaded_bytes;
  const figure = (what: string, unit: string, value: number, atMost?: number): Figure => ({
    name: `${what}, ${name}`,
    unit,
    values: [value],
    ...(atMost === undefined ? {} : { aim: { atMost } }),
  });
  return {
    figures: [
      figure('a step', 's', found.seconds, aims?.seconds),
      figure('a step, CPU', 's', found.cpu_seconds),
      figure('highest resident memory', 'GB', found.peak_bytes / 1e9, aims?.gigabytes),
      figure('of this, beside the loaded model', 'GB', took / 1e9),
      figure('the same as it is reckoned', 'GB', reckoned / 1e9),
      figure('measured against reckoned', '×', took / reckoned, 1),
    ],
    notes: [
      `${name}: ${String(found.tokens)} tokens, the step bound was measured ${String(found.bound_passes)} times, each a forward pass`,
    ],
  };
}
