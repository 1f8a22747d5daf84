// The command line as a process of its own. In: words, input, an environment. Out: its status and what it wrote.
import { spawn } from 'node:child_process';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { inheritedEnvironment } from '@backtalk/kit';
import { root } from '../loop/machine.js';

export interface Ran {
  readonly status: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

export interface CommandOptions {
  readonly folder: string;
  readonly input?: string | undefined;
  /** Beside the path, all that the command knows. */
  readonly environment?: Readonly<Record<string, string>>;
}

/** Of a command with --json: a value a line. */
export function valuesIn<T>({ stdout }: Ran): T[] {
  return stdout.split('\n').flatMap((line) => (line === '' ? [] : [JSON.parse(line) as T]));
}

const program = join(root, 'services', 'cli', 'bin', 'backtalk.mjs');

export async function runCommand(
  words: readonly string[],
  { folder, input, environment }: CommandOptions,
): Promise<Ran> {
  const env = { PATH: inheritedEnvironment()['PATH'] ?? '', ...environment };
  const child = spawn(process.execPath, [program, ...words], { cwd: folder, env });
  child.stdin.end(input ?? '');
  const ended = new Promise<number | null>((resolve) => child.once('exit', resolve));
  const [status, stdout, stderr] = await Promise.all([ended, text(child.stdout), text(child.stderr)]);
  return { status, stdout, stderr };
}
