import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { PassThrough } from 'node:stream';
import { text } from 'node:stream/consumers';
import { fileURLToPath } from 'node:url';
import { repositoryRoot, TemporaryDirectory } from '@backtalk/kit/testing';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { z } from 'zod';
import { dryRun } from './dry-run.js';
import { openTo, refuseShortKey } from './endpoint-key.js';
import { writeConnection } from './connection.js';
import { dataFolderAt, openDataFolder } from './data-folder.js';
import { readOptions } from './options.js';
import { portsFrom } from './ports.js';
import { hiddenSecrets } from './secrets.js';
import { swapEnvironment, swapFlags } from './vllm-program.js';

const directory = new TemporaryDirectory('dry-run');
const key = 'sk-of-the-clients-0123456789';
const fields = {
  architectures: ['Qwen3ForCausalLM'],
  max_position_embeddings: 40_960,
  vocab_size: 151_936,
  hidden_size: 2_560,
  intermediate_size: 9_728,
  num_hidden_layers: 36,
  num_attention_heads: 32,
  num_key_value_heads: 8,
  head_dim: 128,
  tie_word_embeddings: true,
};
const folders = Object.fromEntries(['base', 'reader'].map((name) => [name, directory.join(name)])) as Record<
  'base' | 'reader',
  string
>;

beforeAll(() => {
  for (const folder of Object.values(folders)) {
    mkdirSync(folder);
    writeFileSync(`${folder}/config.json`, JSON.stringify(fields));
  }
  writeFileSync(`${folders.reader}/tokenizer.json`, '{}');
});

afterAll(() => {
  directory.remove();
});

const shown = z.object({
  endpoint: z.number(),
  processes: z.array(
    z.object({
      name: z.string(),
      cards: z.array(z.number()),
      port: z.number().optional(),
      command: z.array(z.string()),
      environment: z.record(z.string(), z.string()),
    }),
  ),
});

async function said(flags: readonly string[], variables: Readonly<Record<string, string>>): Promise<string> {
  const root = repositoryRoot();
  const given = ['--profile', 'gpu', '--dry-run', '--data', directory.join('data'), ...flags];
  const options = readOptions(given, root, { HF_CKPT: folders.base, ...variables });
  const out = new PassThrough();
  if (options.box === undefined) throw new RangeError('No cards were asked for.');
  await dryRun(root, options, options.box, out);
  out.end();
  return text(out);
}

async function processesOf(flags: readonly string[], variables: Readonly<Record<string, string>> = {}) {
  const plan = shown.parse(JSON.parse(await said([...flags, '--json'], variables)));
  return { ...plan, by: new Map(plan.processes.map((process) => [process.name, process])) };
}

const seeds = {
  NUM_GPUS: '8',
  ACTOR_GPUS: '4',
  ROLLOUT_GPUS: '2',
  PRM_GPUS: '2',
  TP: '2',
  PORT: '31000',
  SERVED_MODEL_NAME: 'qwen3-4b',
  SGLANG_API_KEY: key,
  PRM_M: '5',
};

describe('a dry run', () => {
  it('a dry run names every process with its cards, ports and command line, as the launch variables have it', async () => {
    const all = { ...seeds, PRM_MODEL_PATH: folders.reader, SAVE_CKPT: directory.join('saved') };
    const { endpoint, by } = await processesOf(['--gpus', '8x80GB'], all);
    expect(endpoint).toBe(31_000);
    const engine = by.get('engine');
    expect(engine).toMatchObject({ cards: [0, 1], port: 31_030 });
    expect(engine?.command.slice(0, 3)).toEqual(['vllm', 'serve', folders.base]);
    expect(engine?.command).toEqual(
      expect.arrayContaining([
        ...swapFlags,
        ...['--served-model-name=base', '--tensor-parallel-size=2', '--gpu-memory-utilization=0.92'],
        ...['--max-model-len=32768', '--dtype=bfloat16', '--max-loras=4', '--max-lora-rank=16', '--port=31030'],
      ]),
    );
    expect(engine?.environment).toMatchObject({
      ...swapEnvironment,
      CUDA_VISIBLE_DEVICES: '0,1',
      CUDA_DEVICE_ORDER: 'PCI_BUS_ID',
      VLLM_API_KEY: '***',
    });
    const judge = by.get('judge-engine');
    expect(judge).toMatchObject({ cards: [2, 3], port: 31_038, environment: { CUDA_VISIBLE_DEVICES: '2,3' } });
    expect(judge?.command).toContain('--served-model-name=reader');
    expect(judge?.command).not.toContain('--enable-lora');
    const on = { CUDA_VISIBLE_DEVICES: '4,5,6,7', BACKTALK_TRAINING_PROCESSES: '4' };
    const training = { BACKTALK_DEVICE: 'cuda', BACKTALK_DTYPE: 'bfloat16', ...on };
    expect(by.get('training-worker')).toMatchObject({ cards: [4, 5, 6, 7], environment: training });
    const reads = { BACKTALK_JUDGE_URL: 'http://127.0.0.1:31038', BACKTALK_JUDGE_MODEL: 'reader' };
    expect(by.get('judge')?.environment).toMatchObject({
      ...reads,
      BACKTALK_JUDGE_VOTES: '5',
      BACKTALK_JUDGE_BACKEND: 'free',
    });
    expect(by.get('trainer')?.environment).toMatchObject({ ...reads, BACKTALK_JUDGE_BACKEND: 'free' });
    expect(by.get('gateway')?.environment).toMatchObject({
      BACKTALK_POLICIES: 'qwen3-4b',
      BACKTALK_LISTEN: '127.0.0.1:31000',
    });
    expect(by.get('checkpoints')?.command.slice(-4)).toEqual(['weights', '--follow', '--to', directory.join('saved')]);
  });

  it('each of several engines has a loader, a port and a folder of versions of its own', async () => {
    const { by, processes } = await processesOf(['--gpus', '4x80GB']);
    const engines = processes.filter(({ name }) => name.startsWith('engine'));
    expect(engines.map(({ name, cards, port }) => [name, cards, port])).toEqual([
      ['engine', [0], 30_030],
      ['engine-2', [1], 30_031],
      ['engine-3', [2], 30_032],
    ]);
    const loaders = ['loader', 'loader-2', 'loader-3'].map((name) => by.get(name)?.environment ?? {});
    for (const variable of [
      'BACKTALK_ENGINE_URL',
      'BACKTALK_ADAPTER_DIR',
      'BACKTALK_INSTANCE',
      'BACKTALK_GRPC_ADDRESS',
      'BACKTALK_HEALTH_ADDRESS',
    ])
      expect(new Set(loaders.map((environment) => environment[variable])).size, variable).toBe(3);
    expect(loaders[2]).toMatchObject({ BACKTALK_ENGINE_URL: 'http://127.0.0.1:30032' });
  });

  it('one card is shared by engine and training, and the engine’s votes judge', async () => {
    const { by } = await processesOf(['--gpus', '80GB']);
    const visible = ['engine', 'training-worker'].map((name) => by.get(name)?.environment['CUDA_VISIBLE_DEVICES']);
    expect(visible).toEqual(['0', '0']);
    const share = by.get('engine')?.command.find((word) => word.startsWith('--gpu-memory-utilization='));
    expect(Number(share?.split('=')[1])).toBeLessThan(0.6);
    expect(by.get('judge')?.environment).toMatchObject({ BACKTALK_JUDGE_BACKEND: 'free' });
    expect(by.has('judge-engine')).toBe(false);
  });

  it('a dry run says the same for people, shows no key and writes nothing', async () => {
    const lines = await said(['--gpus', '2x80GB'], { SGLANG_API_KEY: key });
    expect(lines).toContain('card 0  engine 73.6 GB');
    expect(lines).toContain('  vllm serve ');
    expect(lines).toContain('Nothing was started. No card has confirmed these figures');
    expect(lines).not.toContain(key);
    expect(existsSync(directory.join('data'))).toBe(false);
  });

  it('a dry run says it in the variables that the compose file reads, every one of them', async () => {
    const all = { ...seeds, PRM_MODEL_PATH: folders.reader, SAVE_CKPT: directory.join('saved') };
    const lines = (await said(['--gpus', '8x80GB', '--compose'], all)).trim().split('\n');
    const given = new Map(lines.map((line) => line.split('=', 2) as [string, string]));
    const wanted = {
      SERVING_CARDS: '0,1',
      SERVING_SPLIT: '2',
      JUDGE_CARDS: '2,3',
      TRAINING_CARDS: '4,5,6,7',
      TRAINING_PROCESSES: '4',
      PORT: '31000',
    };
    for (const [name, value] of Object.entries(wanted)) expect(given.get(`BACKTALK_${name}`), name).toBe(value);
    expect(given.get('COMPOSE_PROFILES')).toBe('judge,checkpoints');
    const files = ['compose.yaml', 'compose.gpu.yaml'].map((name) =>
      readFileSync(join(repositoryRoot(), 'deploy', name), 'utf8'),
    );
    const unread = [...given.keys()].filter(
      (name) => name !== 'COMPOSE_PROFILES' && !files.join('').includes(`\${${name}`),
    );
    expect(unread).toEqual([]);
    expect(lines.join('\n')).not.toContain(key);
  });

  it('the compose file is told where steps compute, and in which numbers, as the plan has it', async () => {
    const training = async (...flags: readonly string[]) => {
      const { by } = await processesOf(['--gpus', '2x80GB', ...flags]);
      const { BACKTALK_DEVICE, BACKTALK_DTYPE } = by.get('training-worker')?.environment ?? {};
      return [`BACKTALK_DEVICE=${BACKTALK_DEVICE ?? ''}`, `BACKTALK_DTYPE=${BACKTALK_DTYPE ?? ''}`];
    };
    for (const [flags, device] of [[[], 'cuda'] as const, [['--device', 'cpu'], 'cpu'] as const]) {
      const lines = (await said(['--gpus', '2x80GB', '--compose', ...flags], {})).split('\n');
      expect(lines).toEqual(expect.arrayContaining(await training(...flags)));
      expect(lines).toContain(`BACKTALK_DEVICE=${device}`);
    }
  });

  it.each(['--compose', '--json'])(
    'a dry run with %s that is refused writes nothing into the file that waits for it',
    (as) => {
      const main = fileURLToPath(new URL('../dist/main.js', import.meta.url));
      const flags = ['--profile', 'gpu', '--dry-run', as, '--gpus', '80GB', '--model', '/gone'];
      const { status, stdout, stderr } = spawnSync(process.execPath, [main, 'start', ...flags], { encoding: 'utf8' });
      expect({ status, stdout }).toEqual({ status: 1, stdout: '' });
      expect(stderr).toContain('The model in /gone cannot be served');
    },
  );

  it('a dry run names the teacher, and who is told of it', async () => {
    const { by } = await processesOf(['--gpus', '80GB', '--teacher', folders.reader]);
    expect(by.get('training-worker')?.environment).toMatchObject({ BACKTALK_TEACHER_MODEL_DIR: folders.reader });
    expect(by.get('trainer')?.environment['BACKTALK_RECIPE_SET']).toContain('teacher=other');
  });

  describe('a dry run in a folder whose last start named a judge', () => {
    const judge = { url: 'http://judges/v1', model: 'kept', keyFile: '/keys/judge' };
    beforeEach(() => {
      const data = openDataFolder(directory.join('data'));
      const start = { data, ports: portsFrom(30_000), secrets: hiddenSecrets, host: '127.0.0.1' };
      writeConnection({ ...start, policies: ['backtalk'], judge });
    });
    afterEach(() => rmSync(directory.join('data'), { recursive: true }));

    const judgeIn = async (flags: readonly string[], variables: Readonly<Record<string, string>> = {}) => {
      const { by } = await processesOf(['--gpus', '2x80GB', '--model', folders.base, ...flags], variables);
      const { BACKTALK_JUDGE_URL: url, BACKTALK_JUDGE_MODEL: model } = by.get('judge')?.environment ?? {};
      return { url, model };
    };

    it.each<[string, readonly string[], object]>([
      ['the kept judge', [], { url: judge.url, model: 'kept' }],
      ['another name of it', ['--judge-model', 'other'], { url: judge.url, model: 'other' }],
      ['another judge', ['--judge-url', 'http://others'], { url: 'http://others', model: '' }],
      ['no judge', ['--judge-url', 'none'], { url: undefined, model: undefined }],
    ])('a dry run shows %s, as the start with the same flags would have it: %j', async (_, flags, shown) => {
      expect(await judgeIn(flags)).toEqual(shown);
    });

    it('an engine that judges alone stands in the place of a kept judge', async () => {
      expect(await judgeIn([], { PRM_MODEL_PATH: folders.reader })).toMatchObject({ model: 'reader' });
    });

    it('a kept judge is refused for Compose, which would start without it', async () => {
      const flags = ['--gpus', '80GB', '--model', folders.base, '--compose'];
      await expect(said(flags, {})).rejects.toThrow('compose.gpu.yaml takes no --judge-url: say --judge-url none, or');
      expect(await said([...flags, '--judge-url', 'none'], {})).toContain('BACKTALK_');
    });
  });

  it.each<[readonly string[], Readonly<Record<string, string>>, string]>([
    [[], { HF_CKPT: 'Qwen/Qwen3-4B' }, 'Qwen/Qwen3-4B is not fetched yet, and a dry run fetches nothing'],
    [['--engine', 'http://e'], {}, "it starts vLLM on this machine's cards, and --engine http://e is another"],
    [['--judge-url', 'http://j'], { PRM_MODEL_PATH: '/m' }, '--judge-url and PRM_MODEL_PATH name two judges'],
    [['--compose', '--judge-url', 'http://j'], {}, 'compose.gpu.yaml takes no --judge-url: say --judge-url none, or'],
    [['--compose', '--teacher', folders.reader], {}, 'compose.gpu.yaml takes no --teacher: say --teacher none, or'],
    [['--compose', '--host', '0.0.0.0'], {}, 'compose.gpu.yaml takes no --host: say --host 127.0.0.1, or leave out'],
    [[], { HF_CKPT: '/gone' }, 'The model in /gone cannot be served: it has no config.json that can be read'],
  ])('refuses %j with %j in one line', async (flags, variables, line) => {
    await expect(said(['--gpus', '80GB', ...flags], variables)).rejects.toThrow(line);
  });
});

describe('options of a start on cards', () => {
  const read = (flags: readonly string[], variables: Readonly<Record<string, string>> = {}) =>
    readOptions(flags, '/h', variables);

  it('flags go before launch variables, which no other start reads', () => {
    const variables = { PORT: '31000', SERVED_MODEL_NAME: 'qwen3-4b', HF_CKPT: '/models/base' };
    const onCards = { port: 31_000, policies: ['qwen3-4b'], model: { folder: '/models/base' } };
    expect(read(['--profile', 'gpu'], variables)).toMatchObject(onCards);
    expect(read(['--profile', 'gpu', '--port', '32000'], variables)).toMatchObject({ port: 32_000 });
    const { port, policies, model } = read([], variables);
    expect({ port, policies, model }).toEqual({ port: 30_000 });
  });

  it.each<[readonly string[], Readonly<Record<string, string>>, string]>([
    [['--profile', 'tpu'], {}, "--profile 'tpu' is not laptop or gpu."],
    [['--dry-run'], {}, "--dry-run 'true' is not usable without --profile gpu."],
    [['--profile', 'gpu'], { PORT: '80' }, '--profile gpu: PORT=80 is not a port from 1024 to 65468.'],
    [['--profile', 'gpu'], { SERVED_MODEL_NAME: 'a.b' }, '--profile gpu: SERVED_MODEL_NAME=a.b is not one to 16'],
  ])('refuses %j with %j in one line', (flags, variables, line) => {
    expect(() => read(flags, variables)).toThrow(line);
  });
});

describe('the key that SGLANG_API_KEY names', () => {
  it('the key opens the endpoint beside the keys that there are, and stands in no file', () => {
    const data = dataFolderAt(directory.join('keys'));
    mkdirSync(data.path);
    for (const given of [key, 'short', key]) openTo(data, given);
    const file = readFileSync(data.keys, 'utf8');
    expect(z.object({ keys: z.array(z.unknown()) }).parse(JSON.parse(file)).keys).toHaveLength(2);
    expect(file).not.toContain(key);
  });

  it('the key has to be long where the endpoint is open to other machines', () => {
    refuseShortKey('short', '127.0.0.1');
    expect(() => refuseShortKey('short', '0.0.0.0')).toThrow(
      '--profile gpu: SGLANG_API_KEY has 5 characters, and --host 0.0.0.0 opens the endpoint to other machines: 16 are the least.',
    );
  });
});
