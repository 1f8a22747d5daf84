// Docker's command line. In: words. Out: what it printed, and how it ended; a command that must succeed throws what it said.
import { execFile, spawnSync } from 'node:child_process';
import { promisify } from 'node:util';
import { repositoryRoot } from '@backtalk/kit/testing';

export interface Ended {
  readonly status: number;
  readonly output: string;
}

const outputMaxBytes = 64 * 1024 * 1024;
const askMs = 30_000;

/** Why no image can be built and run here; undefined where an engine answers and Compose is there. */
export function whyNoDocker(): string | undefined {
  for (const words of [
    ['info', '--format', '{{.ServerVersion}}'],
    ['compose', 'version'],
  ]) {
    const { error, status, stderr } = spawnSync('docker', words, { encoding: 'utf8', timeout: askMs });
    if (error !== undefined) return `docker cannot be run: ${error.message}`;
    if (status !== 0) return `\`docker ${words.join(' ')}\` fails: ${stderr.trim().split('\n')[0] ?? ''}`;
  }
  return undefined;
}

/** Runs `docker` in the root of the repository, to its end or a deadline, with further variables. */
export async function tryDocker(
  words: readonly string[],
  timeoutMs: number,
  environment: Readonly<Record<string, string>> = {},
): Promise<Ended> {
  const settings = Object.entries(environment).map(([name, value]) => `${name}=${value}`);
  const options = { cwd: repositoryRoot(), timeout: timeoutMs, maxBuffer: outputMaxBytes };
  try {
    const { stdout, stderr } = await promisify(execFile)('env', [...settings, 'docker', ...words], options);
    return { status: 0, output: stdout + stderr };
  } catch (error) {
    const field = (name: string): unknown => (error instanceof Error ? Reflect.get(error, name) : undefined);
    return { status: Number(field('code') ?? 1), output: `${String(field('stdout'))}${String(field('stderr'))}` };
  }
}

export async function docker(...parameters: Parameters<typeof tryDocker>): Promise<string> {
  const { status, output } = await tryDocker(...parameters);
  if (status !== 0) throw new RangeError(`docker ${parameters[0].join(' ')} ended with ${String(status)}:\n${output}`);
  return output.trim();
}
