// Makes the streams of a machine anew, as the operator's command does it.
import { execFile } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { inheritedEnvironment } from '@backtalk/kit';
import { root, type TestMachine } from '../loop/machine.js';

const program = join(root, 'services', 'cli', 'bin', 'backtalk.mjs');

/** @param turnsBytesMax of the log of turns */
export async function ensureStreams({ data, ports }: TestMachine, turnsBytesMax: number): Promise<void> {
  const secrets = JSON.parse(readFileSync(data.secrets, 'utf8')) as { passwords: Record<string, string> };
  const env = {
    PATH: inheritedEnvironment()['PATH'] ?? '',
    BACKTALK_NATS_URL: `nats://127.0.0.1:${String(ports.nats)}`,
    BACKTALK_NATS_USER: 'admin',
    BACKTALK_NATS_PASSWORD: secrets.passwords['admin'] ?? '',
    BACKTALK_TURNS_BYTES_MAX: String(turnsBytesMax),
  };
  await promisify(execFile)(process.execPath, [program, 'streams', 'ensure'], { env, timeout: 60_000 });
}
