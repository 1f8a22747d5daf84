// Reads a whole configuration at once. In: settings and an environment. Out: a frozen, typed object, or one
// `config_invalid` that lists every bad value. This file is the only place of the house that reads the environment.
import { isBacktalkError, kitErrors } from '../errors/backtalk-error.js';
import type { Reader } from './setting.js';

export type Shape = Readonly<Record<string, Reader<unknown>>>;
export type Environment = Readonly<Record<string, string | undefined>>;
type Values<S extends Shape> = { readonly [K in keyof S]: S[K] extends Reader<infer T> ? T : never };

/** Settings with rules that hold between them. */
export interface Settings<S extends Shape = Shape> {
  readonly shape: S;
  check(config: Values<S>): readonly string[];
}

export type ConfigOf<S extends Shape | Settings> =
  S extends Settings<infer T> ? Values<T> : S extends Shape ? Values<S> : never;

/**
 * Settings that are good together as well as one by one.
 * @param check gives one line for each broken rule, which names the variables and says what to do. It is asked only when
 *   every value is good by itself.
 */
export function settings<S extends Shape>(shape: S, check: (config: Values<S>) => readonly string[]): Settings<S> {
  return { shape, check };
}

/** The settings one by one, without the rules between them. */
export function shapeOf(given: Shape | Settings): Shape {
  return isSettings(given) ? given.shape : given;
}

export function readConfig<S extends Shape | Settings>(given: S, environment: Environment = process.env): ConfigOf<S> {
  const values: [string, unknown][] = [];
  const problems: string[] = [];
  for (const [key, reader] of Object.entries(shapeOf(given))) {
    try {
      values.push([key, reader.read(environment[reader.variable])]);
    } catch (error) {
      if (!isBacktalkError(error, 'config_invalid')) throw error;
      problems.push(error.message);
    }
  }
  problems.push(...Object.entries(retired).flatMap(([name, why]) => (environment[name] ? [`${name} ${why}`] : [])));
  const config = Object.freeze(Object.fromEntries(values));
  if (problems.length === 0 && isSettings(given)) problems.push(...given.check(config));
  if (problems.length > 0) throw kitErrors.configInvalid({ problems });
  return config as ConfigOf<S>;
}

/** What earlier releases read and nothing reads any more: who sets it counts on what it did. */
const retired: Readonly<Record<string, string>> = {
  BACKTALK_SERVICE_TOKEN:
    'is no longer read: each pair of services has a token of its own, such as BACKTALK_TRAINER_TO_TRAINING_TOKEN; unset it.',
};

/** The text of `--help`: every variable, its meaning, its default. */
export function describeConfig(given: Shape | Settings): string {
  const rows = Object.values(shapeOf(given));
  const width = Math.max(0, ...rows.map((row) => row.variable.length));
  return rows.map((row) => `  ${row.variable.padEnd(width)}  ${row.description} (${row.shownDefault})`).join('\n');
}

function isSettings(given: Shape | Settings): given is Settings {
  return typeof given['check'] === 'function';
}

const passedOn: ReadonlySet<string> = new Set([
  'PATH',
  'HOME',
  'LANG',
  'LC_ALL',
  'TMPDIR',
  'TZ',
  'LD_LIBRARY_PATH',
  'SSL_CERT_FILE',
  'OTEL_EXPORTER_OTLP_ENDPOINT',
  'OTEL_EXPORTER_OTLP_HEADERS',
]);

/** What one program needs of the environment that others must not see, such as a token of its own. */
export function environmentOf(
  names: readonly string[],
  environment: NodeJS.ProcessEnv = process.env,
): Record<string, string> {
  return Object.fromEntries(
    names.flatMap((name) => (environment[name] === undefined ? [] : [[name, environment[name]]])),
  );
}

/** What a program of the user's is given: all but what is said to Backtalk, secrets among it. */
export function foreignEnvironment(environment: NodeJS.ProcessEnv = process.env): NodeJS.ProcessEnv {
  return Object.fromEntries(Object.entries(environment).filter(([name]) => !name.startsWith('BACKTALK_')));
}

/**
 * What a process hands on to the processes that it starts: what any program needs, and the settings of Backtalk that were
 * made on purpose. Secrets of other programs stay behind.
 */
export function inheritedEnvironment(environment: NodeJS.ProcessEnv = process.env): Record<string, string> {
  const entries = Object.entries(environment).filter(([name]) => passedOn.has(name) || name.startsWith('BACKTALK_'));
  return Object.fromEntries(entries.flatMap(([name, value]) => (value === undefined ? [] : [[name, value]])));
}
