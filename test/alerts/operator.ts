// What an operator's commands do to a machine: its streams are made anew, training that is held goes on.
import { execFile } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { inheritedEnvironment } from '@backtalk/kit';
import { root, type TestMachine } from '../loop/machine.js';

const program = join(root, 'services', 'cli', 'bin', 'backtalk.mjs');

/** @param turnsBytesMax of the log of turns */
export async function ensureStreams(machine: TestMachine, turnsBytesMax: number): Promise<void> {
  await command(machine, 'admin', ['streams', 'ensure'], { BACKTALK_TURNS_BYTES_MAX: String(turnsBytesMax) });
}

export async function resume(machine: TestMachine): Promise<void> {
  await command(machine, 'cli', ['resume'], {});
}

async function command(
  { data, ports }: TestMachine,
  user: 'admin' | 'cli',
  words: readonly string[],
  more: Readonly<Record<string, string>>,
): Promise<void> {
  const secrets = JSON.parse(readFileSync(data.secrets, 'utf8')) as { passwords: Record<string, string> };
  const env = {
    PATH: inheritedEnvironment()['PATH'] ?? '',
    BACKTALK_NATS_URL: `nats://127.0.0.1:${String(ports.nats)}`,
    BACKTALK_NATS_USER: user,
    BACKTALK_NATS_PASSWORD: secrets.passwords[user] ?? '',
    ...more,
  };
  await promisify(execFile)(process.execPath, [program, ...words], { env, timeout: 60_000 });
}
