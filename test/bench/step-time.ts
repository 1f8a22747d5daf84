// One training step of the laptop's size, beside the same step in plain PyTorch: training_step.py measures, this reads its table.
import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { inheritedEnvironment } from '@backtalk/kit';
import { root } from '../loop/machine.js';
import type { Benchmark, Measured } from './benchmark.js';
import { benchErrors } from './errors.js';

const rounds = 3;
const withinMs = 400_000;
const program = join('test', 'bench', 'training_step.py');

export const stepTime: Benchmark = {
  name: 'step',
  about: 'one training step, beside the same step in plain PyTorch',
  run: async (context) => {
    context.say(`${rounds} steps of each kind`);
    return readStepTable(await runProgram(['--rounds', String(rounds)]));
  },
};

async function runProgram(args: readonly string[]): Promise<string> {
  const python = join(root, '.venv', 'bin', 'python');
  const options = { cwd: root, env: inheritedEnvironment(), timeout: withinMs };
  try {
    return (await promisify(execFile)(python, [program, ...args], options)).stdout;
  } catch (error) {
    const output = error instanceof Error ? (error.message.trim().split('\n').at(-1) ?? '') : String(error);
    throw benchErrors.programFailed({ program, output }, error);
  }
}

interface Row {
  readonly name: string;
  /** Median, least, most. */
  readonly seconds: readonly [number, number, number];
  readonly cpuSeconds: number;
  readonly peakMegabytes: number;
}

/** The table gives median, least and most, which stand for the runs here: the same three come out again. */
export function readStepTable(text: string): Measured {
  const rows = text.split('\n').flatMap(readRow);
  const [ours, plain] = rows;
  if (ours === undefined || plain === undefined) throw benchErrors.unreadable({ what: `The table of ${program}` });
  const notes = text.split('\n').filter((line) => line.includes('samples,') || line.includes('by phase'));
  return {
    figures: [
      { name: `step of the ${ours.name}`, unit: 's', values: ours.seconds },
      { name: `step in ${plain.name}`, unit: 's', values: plain.seconds },
      { name: 'the worker against plain PyTorch, time', unit: '×', values: [ours.seconds[0] / plain.seconds[0]] },
      { name: 'the worker against plain PyTorch, CPU', unit: '×', values: [ours.cpuSeconds / plain.cpuSeconds] },
      { name: 'highest resident memory of a step, worker', unit: 'MB', values: [ours.peakMegabytes] },
    ],
    notes,
  };
}

function readRow(line: string): Row[] {
  const found = /^(\S+(?: \S+)*)\s{2,}([\d.]+)\s+([\d.]+)\s+([\d.]+)\s+([\d.]+)\s+([\d.]+)$/.exec(line);
  if (found === null) return [];
  const [, name = '', median, least, most, cpu, peak] = found;
  const seconds = [Number(median), Number(least), Number(most)] as const;
  return [{ name, seconds, cpuSeconds: Number(cpu), peakMegabytes: Number(peak) }];
}
