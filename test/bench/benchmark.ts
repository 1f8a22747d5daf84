// What a benchmark is: a name, what it measures, and a way to run it that gives figures with one value for each run.
// Nothing here judges a figure: aims are printed beside it.
import type { TestMachine, TestMachineOptions } from '../loop/machine.js';

/** What a figure should be, at most or at least. */
export type Aim = { readonly atMost: number } | { readonly atLeast: number };

export interface Figure {
  readonly name: string;
  readonly unit: string;
  /** One for each run, in order. */
  readonly values: readonly number[];
  readonly aim?: Aim;
}

export interface Measured {
  readonly figures: readonly Figure[];
  /** How it was measured, and what else a reader should know. */
  readonly notes: readonly string[];
}

export interface BenchmarkContext {
  /** Says what is being done now. */
  say(progress: string): void;
  /** Starts a whole machine, lends it, and stops it whatever happens. */
  machine<T>(options: TestMachineOptions, use: (machine: TestMachine) => Promise<T>): Promise<T>;
}

export interface Benchmark {
  /** As `--only` takes it. */
  readonly name: string;
  readonly about: string;
  run(context: BenchmarkContext): Promise<Measured>;
}
