import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { root, startTestMachine, type TestMachine } from '../loop/machine.js';

const checks = [
  ...['whole', 'streamed', 'usage_chunk', 'tools_whole', 'tools_streamed', 'abort'],
  ...['unknown_model', 'long_prompt', 'busy_engine', 'models'],
];

let machine: TestMachine;
const found = new Map<string, string>();

beforeAll(async () => {
  machine = await startTestMachine({
    engine: 'stand-in',
    training: 'stand-in',
    pace: { tokenMs: 0, answerTokens: 12 },
  });
  const python = join(root, '.venv', 'bin', 'python');
  const script = join(root, 'test', 'contracts', 'openai_client.py');
  const { stdout } = await promisify(execFile)(python, [script, `${machine.gateway}/v1`, machine.engine]);
  for (const line of stdout.trim().split('\n')) {
    const { check, failure } = JSON.parse(line) as { check: string; failure: string };
    found.set(check, failure);
  }
});

afterAll(async () => {
  await machine?.stop();
});

describe('the official Python client', () => {
  it.each(checks)('the Python client finds what it expects: %s', (check) => {
    expect(found.get(check)).toBe('');
  });

  it('the Python client asks for nothing that this list does not name', () => {
    expect([...found.keys()]).toEqual(checks);
  });
});
