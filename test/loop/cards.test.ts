import { execFile, spawn, type ChildProcess } from 'node:child_process';
import { chmodSync, existsSync, mkdirSync, readFileSync, readlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { busyPorts, portsFrom, refusedPort } from '@backtalk/deploy';
import { inheritedEnvironment } from '@backtalk/kit';
import { TemporaryDirectory, until } from '@backtalk/kit/testing';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { z } from 'zod';
import { root } from './machine.js';
import { MadeModel } from './made-model.js';
import { ask, type Message } from './talk.js';

// The start command as a person gives it on a machine with three cards. Of the machine, the driver's program and vLLM are stood in
// for: the one names cards that are not here, the other writes down how it was started and is the built-in engine on this CPU.
const directory = new TemporaryDirectory('cards');
const base = new MadeModel('qwen3', 4096);
const programs = directory.join('bin');
const started = directory.join('started.jsonl');
const saved = directory.join('saved');
const data = directory.join('data');
const key = 'sk-of-the-clients-0123456789';
const policy = 'qwen3-made';
const headers = { authorization: `Bearer ${key}` };
const upWithinMs = 500_000;

let machine: ChildProcess;
let gateway: string;
let said = '';

function program(name: string, script: string): void {
  const path = join(programs, name);
  writeFileSync(path, `#!/bin/sh\n${script}\n`);
  chmodSync(path, 0o755);
}

beforeAll(async () => {
  mkdirSync(programs);
  program('nvidia-smi', "printf 'index, memory.total [MiB]\\n0, 24564 MiB\\n1, 24564 MiB\\n2, 24564 MiB\\n'");
  const python = join(root, '.venv', 'bin', 'python');
  program('vllm', `exec ${python} ${join(root, 'test', 'loop', 'stand-ins', 'vllm.py')} ${started} "$@"`);
  const port = await until(
    async () => {
      const ports = portsFrom(20_000 + 100 * Math.floor(Math.random() * 100));
      const others = [31, 38, 51, 61].map((offset) => ['another', ports.endpoint + offset] as const);
      const isFree =
        refusedPort(ports) === undefined && (await busyPorts(ports, '127.0.0.1', true, others)).length === 0;
      return isFree && ports.endpoint;
    },
    { what: 'A row of free ports' },
  );
  gateway = `http://127.0.0.1:${String(port)}`;
  const inherited = inheritedEnvironment();
  const env = {
    ...inherited,
    PATH: `${programs}:${inherited['PATH'] ?? ''}`,
    PORT: String(port),
    NUM_GPUS: '3',
    ROLLOUT_GPUS: '2',
    PRM_GPUS: '1',
    HF_CKPT: base.folder,
    SAVE_CKPT: saved,
    SERVED_MODEL_NAME: policy,
    SGLANG_API_KEY: key,
    BACKTALK_RECIPE_SET: 'effective=2,effectiveMin=2,anchorsPerEffective=0,answerTokensMax=16',
  };
  const flags = ['--profile', 'gpu', '--device', 'cpu', '--data', data];
  machine = spawn(process.execPath, [join(root, 'deploy', 'dist', 'main.js'), ...flags], { env });
  machine.stdout?.on('data', (chunk: Buffer) => (said += chunk.toString()));
  await until(() => said.includes('Ctrl-C stops everything') || machine.exitCode !== null, {
    what: 'The start says that it serves',
    timeoutMs: upWithinMs,
  }).catch((error: unknown) => {
    process.stdout.write(said);
    throw error;
  });
  expect(said).toContain('Backtalk serves.');
});

afterAll(async () => {
  const ended = new Promise((resolve) => machine.once('exit', resolve));
  if (machine.exitCode === null) {
    machine.kill('SIGTERM');
    await ended;
  }
  directory.remove();
  base.remove();
});

const wasStarted = z.object({ arguments: z.array(z.string()), environment: z.record(z.string(), z.string()) });

it('each vLLM has its cards, its model and its share, and the judge’s loads no adapters', () => {
  const engines = readFileSync(started, 'utf8')
    .trim()
    .split('\n')
    .map((line) => wasStarted.parse(JSON.parse(line)))
    .sort((one, other) =>
      (one.environment['CUDA_VISIBLE_DEVICES'] ?? '').localeCompare(other.environment['CUDA_VISIBLE_DEVICES'] ?? ''),
    );
  expect(engines.map(({ environment }) => environment['CUDA_VISIBLE_DEVICES'])).toEqual(['0', '1', '2']);
  const [first, second, judge] = engines;
  for (const engine of [first, second]) {
    expect(engine?.arguments.slice(0, 2)).toEqual(['serve', base.folder]);
    const flags = [
      '--enable-lora',
      '--max-model-len=4096',
      '--tensor-parallel-size=1',
      '--gpu-memory-utilization=0.92',
    ];
    expect(engine?.arguments).toEqual(expect.arrayContaining(flags));
    expect(engine?.environment['VLLM_ALLOW_RUNTIME_LORA_UPDATING']).toBe('True');
  }
  expect(judge?.arguments.slice(0, 2)).toEqual(['serve', base.folder]);
  expect(judge?.arguments).not.toContain('--enable-lora');
  expect(JSON.stringify(engines)).not.toContain('api-key');
});

it('the endpoint asks for the key of the launch variable', async () => {
  const messages: Message[] = [{ role: 'user', content: 'Hello' }];
  expect(await ask(gateway, { messages, model: policy })).toMatchObject({ status: 401 });
  expect(await ask(gateway, { messages, model: policy, headers, maxTokens: 4 })).toMatchObject({ status: 200 });
});

async function correct(number: number): Promise<void> {
  const question: Message = { role: 'user', content: `Does it rain in bay number ${String(number)}?` };
  const first = await ask(gateway, { messages: [question], model: policy, headers, maxTokens: 24 });
  const feedback = { turn_id: first.turn, score: -1, correction: 'Answer in one short sentence.' };
  const response = await fetch(`${gateway}/v1/feedback`, {
    method: 'POST',
    headers: { ...headers, 'content-type': 'application/json' },
    body: JSON.stringify(feedback),
  });
  expect(response.ok).toBe(true);
}

it('a version is learned, answers from every engine, and stands where SAVE_CKPT says, to be merged', async () => {
  await correct(1);
  await correct(2);
  const question: Message[] = [{ role: 'user', content: 'And who answers now?' }];
  const version = `${policy}-v1`;
  const answers = async () =>
    (await ask(gateway, { messages: question, model: policy, headers, maxTokens: 8 })).weights === version;
  await until(answers, { what: 'The first version answers', timeoutMs: 300_000, everyMs: 500 });
  const latest = join(saved, 'latest');
  await until(() => existsSync(latest), { what: 'The version is saved', timeoutMs: 60_000 });
  expect(readlinkSync(latest)).toBe(version);
  const config: unknown = JSON.parse(readFileSync(join(latest, 'adapter_config.json'), 'utf8'));
  expect(config).toMatchObject({ peft_type: 'LORA', base_model_name_or_path: base.folder });
  const merged = directory.join('merged');
  const command = join(root, 'services', 'cli', 'bin', 'backtalk.mjs');
  const words = [command, '--data', data, 'export', 'weights', version, '--merged', '--to', merged];
  await promisify(execFile)(process.execPath, words);
  for (const file of ['config.json', 'model.safetensors', 'tokenizer.json', 'chat_template.jinja'])
    expect(existsSync(join(merged, file)), file).toBe(true);
});
