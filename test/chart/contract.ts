// What each process of the chart reads from its environment, asked of the process's own code. In: the name of a container.
// Out: the variables that it knows, and its complaints about an environment.
import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { asBacktalkError, readConfig, shapeOf, type Settings, type Shape } from '@backtalk/kit';
import { pythonEnvironment, repositoryRoot } from '@backtalk/kit/testing';
import { z } from 'zod';

type Environment = Readonly<Record<string, string>>;

export interface Contract {
  readonly variables: ReadonlySet<string>;
  readonly required: ReadonlySet<string>;
  /** Empty where the process would start with this environment. */
  complaints(environment: Environment): string;
}

function isShape(value: unknown): value is Shape | Settings {
  if (typeof value !== 'object' || value === null) return false;
  if ('shape' in value && 'check' in value) return true;
  const readers: unknown[] = Object.values(value);
  return readers.length > 0 && readers.every((reader) => isReader(reader));
}

function isReader(value: unknown): boolean {
  return typeof value === 'object' && value !== null && 'variable' in value && 'read' in value;
}

function module(path: string): Promise<Readonly<Record<string, unknown>>> {
  return import(pathToFileURL(path).href) as Promise<Readonly<Record<string, unknown>>>;
}

/** Of the settings that a config.ts exports, those that most are part of: the service's own. */
export async function settingsOfService(service: string): Promise<Shape> {
  const exports = await module(join(repositoryRoot(), 'services', service, 'dist', 'config.js'));
  const shapes = Object.values(exports)
    .filter((value) => isShape(value))
    .map((value) => shapeOf(value));
  return shapes.reduce<Shape>((most, next) => (size(next) > size(most) ? next : most), {});
}

export async function contractOfService(service: string): Promise<Contract> {
  return contractOf(await settingsOfService(service));
}

/** A command reads the settings of all commands, in parts. */
export async function contractOfCommands(): Promise<Contract> {
  const exports = await module(join(repositoryRoot(), 'services', 'cli', 'dist', 'config.js'));
  const shapes = Object.values(exports)
    .filter((value) => isShape(value))
    .map((value) => shapeOf(value));
  const named = shapes.map((shape, at) =>
    Object.entries(shape).map(([key, reader]) => [`${at}.${key}`, reader] as const),
  );
  return contractOf(Object.fromEntries(named.flat()));
}

function size(shape: Shape): number {
  return Object.keys(shape).length;
}

function contractOf(shape: Shape): Contract {
  const readers = Object.values(shape);
  return {
    variables: new Set(readers.map(({ variable }) => variable)),
    required: new Set(
      readers.filter(({ shownDefault }) => shownDefault === 'required').map(({ variable }) => variable),
    ),
    complaints: (environment) => {
      try {
        readConfig(shape, environment);
        return '';
      } catch (error) {
        return asBacktalkError(error).message;
      }
    },
  };
}

/** What the Python part says of each of these environments; empty where it would start. Its code is loaded once for all. */
export function complaintsOfWorker(part: 'engine' | 'training', environments: readonly Environment[]): string[] {
  const script = join(repositoryRoot(), 'test', 'chart', 'read_environments.py');
  const run = spawnSync(join(pythonEnvironment(), 'bin', 'python'), [script, part], {
    input: JSON.stringify(environments),
    encoding: 'utf8',
    timeout: 110_000,
  });
  if (run.status !== 0) throw new TypeError(run.stderr);
  return z.array(z.string()).parse(JSON.parse(run.stdout));
}

/** The Python part has one file that reads the environment, and every name stands in it as it is. */
export function contractOfWorker(part: 'engine' | 'training'): Contract {
  const file = join(repositoryRoot(), 'services', 'worker', 'src', 'backtalk_worker', part, 'config.py');
  const names = readFileSync(file, 'utf8').match(/\bBACKTALK_[A-Z0-9_]+\b/g) ?? [];
  return { variables: new Set(names), required: new Set(), complaints: () => '' };
}
