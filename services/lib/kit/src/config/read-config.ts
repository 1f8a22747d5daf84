// Reads a whole configuration at once. In: a shape of readers and an environment. Out: a frozen, typed object, or one
// `config_invalid` that lists every bad value. This file is the only place of the house that reads the environment.
import { isBacktalkError } from '../errors/backtalk-error.js';
import { kitErrors } from '../errors/kit-errors.js';
import type { Reader } from './reader.js';

export type Shape = Readonly<Record<string, Reader<unknown>>>;
export type ConfigOf<S extends Shape> = { readonly [K in keyof S]: S[K] extends Reader<infer T> ? T : never };
export type Environment = Readonly<Record<string, string | undefined>>;

export function readConfig<S extends Shape>(shape: S, environment: Environment = process.env): ConfigOf<S> {
  const values: [string, unknown][] = [];
  const problems: string[] = [];
  for (const [key, reader] of Object.entries(shape)) {
    try {
      values.push([key, reader.read(environment[reader.variable])]);
    } catch (error) {
      if (!isBacktalkError(error, 'config_invalid')) throw error;
      problems.push(error.message);
    }
  }
  if (problems.length > 0) throw kitErrors.configInvalid({ problems });
  return Object.freeze(Object.fromEntries(values)) as ConfigOf<S>;
}

/** The text of `--help`: every variable, its meaning, its default. */
export function describeConfig(shape: Shape): string {
  const rows = Object.values(shape);
  const width = Math.max(0, ...rows.map((row) => row.variable.length));
  return rows.map((row) => `  ${row.variable.padEnd(width)}  ${row.description} (${row.shownDefault})`).join('\n');
}
