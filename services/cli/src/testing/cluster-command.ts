// `backtalk` as a person runs it against a cluster: a process of its own, with nothing but that cluster's environment.
// In: a broker, its user, words. Out: the exit status, what was printed, the complaint.
import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { inheritedEnvironment } from '@backtalk/kit';
import { repositoryRoot, type TestNats } from '@backtalk/kit/testing';

export interface Printed {
  readonly status: number;
  readonly stdout: string;
  readonly stderr: string;
}

export interface Ran {
  readonly status: number;
  readonly values: readonly Record<string, unknown>[];
  readonly complaint: string;
}

export interface Place {
  readonly nats: TestNats;
  readonly user: 'admin' | 'cli';
  readonly folder: string;
  readonly environment?: Readonly<Record<string, string>> | undefined;
}

/** With `--json`. */
export async function runCommand(place: Place, words: readonly string[]): Promise<Ran> {
  const { status, stdout, stderr } = await printCommand(place, ['--json', ...words]);
  const lines = stdout.split('\n').filter((line) => line !== '');
  return { status, values: lines.map((line) => JSON.parse(line) as Record<string, unknown>), complaint: stderr };
}

export async function printCommand(place: Place, words: readonly string[]): Promise<Printed> {
  return startCommand(place, words).ended;
}

interface Running {
  readonly kill: (signal: NodeJS.Signals) => void;
  /** As `head` does once it has enough. */
  readonly stopReading: () => void;
  readonly ended: Promise<Printed>;
}

/** A command that can be ended as a person ends it. */
export function startCommand({ nats, user, folder, environment }: Place, words: readonly string[]): Running {
  const { url, password } = nats.credentials(user);
  const env = {
    PATH: inheritedEnvironment()['PATH'] ?? '',
    BACKTALK_NATS_URL: url,
    BACKTALK_NATS_USER: user,
    BACKTALK_NATS_PASSWORD: password,
    ...environment,
  };
  const program = join(repositoryRoot(), 'services', 'cli', 'bin', 'backtalk.mjs');
  const running = promisify(execFile)(process.execPath, [program, ...words], { env, cwd: folder });
  return {
    kill: (signal) => void running.child.kill(signal),
    stopReading: () => running.child.stdout?.destroy(),
    ended: running
      .then(({ stdout, stderr }) => ({ status: 0, stdout, stderr }))
      .catch((error: unknown) => failed(error)),
  };
}

function failed(error: unknown): Printed {
  const field = (name: string): unknown =>
    typeof error === 'object' && error !== null ? Reflect.get(error, name) : '';
  return { status: Number(field('code')), stdout: String(field('stdout')), stderr: String(field('stderr')) };
}
