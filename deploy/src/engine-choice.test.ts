import { mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { dirname, join } from 'node:path';
import { startFakeEngine, type FakeEngine, type FakeSettings } from '@backtalk/dialects/testing';
import { freePort, TemporaryDirectory } from '@backtalk/kit/testing';
import { afterAll, afterEach, beforeEach, describe, expect, it } from 'vitest';
import { lastDevice, lastEngine, writeConnection } from './connection.js';
import { openDataFolder } from './data-folder.js';
import {
  engineChoice,
  isElsewhere,
  reasonOfEngine,
  refuseOtherBaseOf,
  refuseUnsharedFolder,
  type EngineElsewhere,
  type EngineFlags,
} from './engine-choice.js';
import { portsFrom } from './ports.js';
import { machineProcesses } from './processes.js';
import { loadSecrets } from './secrets.js';

const directory = new TemporaryDirectory('engine-choice');
const keyFile = directory.join('key');
const key = 'sk-of-the-engine-0123456789';
const root = directory.join('root');
let engine: FakeEngine;

beforeEach(async () => {
  engine = await startFakeEngine({ apiKey: key });
  writeFileSync(keyFile, `${key}\n`, { mode: 0o600 });
});

afterEach(() => engine.stop());

afterAll(() => {
  directory.remove();
});

const flags = (said: Partial<EngineFlags>): EngineFlags => ({ engine: undefined, keyFile: undefined, ...said });

async function elsewhere(): Promise<EngineElsewhere> {
  const found = await engineChoice(flags({ engine: engine.url, keyFile }), undefined, root);
  if (!isElsewhere(found)) throw new RangeError('An address was not taken for one.');
  return found;
}

/** What the set-up leaves behind. */
function installVllm(): void {
  const stamp = join(root, '.venv', 'engines', 'vllm-0.32', 'installed');
  mkdirSync(dirname(stamp), { recursive: true });
  writeFileSync(stamp, '');
}

describe('the choice of an engine', () => {
  it('the built-in engine answers where no other is named', async () => {
    const engine = await engineChoice(flags({}), undefined, root);
    expect(engine).toBe('builtin');
    expect(reasonOfEngine(engine)).toBe('the built-in one, on the CPU (--engine URL or vllm names another)');
  });

  it('an engine at an address is probed for its dialect, its base and its context', async () => {
    const found = await elsewhere();
    const { url, baseModel } = engine;
    const context = { contextTokens: 8_192, takesTools: true };
    expect(found).toEqual({ url, key, keyFile, dialect: 'vllm', baseModel, ...context });
    expect(reasonOfEngine(found)).toBe(
      `${url}, which speaks as vLLM (--engine; key of ${keyFile}; context 8192 tokens)`,
    );
    expect(reasonOfEngine({ ...found, url: 'https://far/v1', takesTools: false })).toMatch(
      /; conversations are sent there; context .*; it REFUSES requests with tools \(vLLM: --enable-auto-tool-choice/,
    );
  });

  it('an engine that was started without a parser of calls is taken, and said to refuse tools', async () => {
    engine.settings.faults = { lacks: 'tools' };
    expect(await elsewhere()).toMatchObject({ takesTools: false });
  });

  it.each<[string, Partial<FakeSettings>, string]>([
    ['loads no adapters', { faults: { lacks: 'adapters' } }, 'it does not load adapters while it runs (vLLM: --enable'],
    ['gives no ids', { faults: { lie: 'no_ids' } }, 'its answers come without token ids'],
    ['gives no logprobs', { faults: { lie: 'no_logprobs' } }, 'its answers come without logprobs'],
    ['scores otherwise', { faults: { lie: 'wrong_scores' } }, 'its logprobs are not those that it scores'],
    ['has a short context', { maxContext: 512 }, 'its context is 512 tokens, and 1024 are the least'],
    ['fails', { faults: { failStatus: 500 } }, 'The engine failed with status 500'],
  ])('an engine that %s is refused in one line', async (_, settings, words) => {
    Object.assign(engine.settings, settings);
    const refused = elsewhere();
    await expect(refused).rejects.toThrow(`--engine ${engine.url} cannot serve: ${words}`);
    await expect(refused).rejects.toThrow(/^[^\n]+[^.]\.$/);
    await expect(refused).rejects.not.toThrow(key);
  });

  it.each<[string, () => Promise<EngineFlags>, RegExp]>([
    [
      'away',
      async () => flags({ engine: `http://127.0.0.1:${String(await freePort())}` }),
      /cannot serve: it does not answer \(The engine cannot be reached \(ECONNREFUSED\)\)\.$/,
    ],
    [
      'there and asks for a key',
      () => Promise.resolve(flags({ engine: engine.url })),
      /cannot serve: it asks for a key \(--engine-key-file FILE\)\.$/,
    ],
    [
      'there and refuses the key',
      () => {
        writeFileSync(keyFile, 'another');
        return Promise.resolve(flags({ engine: engine.url, keyFile }));
      },
      /cannot serve: it refuses the key of .*key\.$/,
    ],
    [
      'there, and the key file is not',
      () => Promise.resolve(flags({ engine: engine.url, keyFile: '/gone' })),
      /^--engine-key-file \/gone is not there\.$/,
    ],
    [
      'not named, but a key is',
      () => Promise.resolve(flags({ keyFile })),
      /^--engine-key-file '.*key' is not usable without --engine URL/,
    ],
    [
      'vLLM, which is not installed',
      () => Promise.resolve(flags({ engine: 'vllm' })),
      /^--engine vllm: vLLM is not installed; npm start -- setup --with vllm installs it\.$/,
    ],
  ])('an engine is refused in one line that is %s', async (_, said, words) => {
    await expect(engineChoice(await said(), undefined, root)).rejects.toThrow(words);
  });

  it('an engine of another base model is refused, and one of this is not', async () => {
    const found = await elsewhere();
    expect(() => refuseOtherBaseOf(found, 'smollm2-135m-wishes')).not.toThrow();
    expect(() => refuseOtherBaseOf(found, 'Qwen3-8B')).toThrow(
      /cannot serve: it serves smollm2-135m-wishes, and the base model of this start is Qwen3-8B \(--model names another/,
    );
  });

  it('an engine that does not see the folder of versions, or takes no adapter of their rank, is refused', async () => {
    const found = await elsewhere();
    const model = directory.join('model');
    mkdirSync(model, { recursive: true });
    const shape = { hidden_size: 8, intermediate_size: 8, num_hidden_layers: 1, num_attention_heads: 2 };
    writeFileSync(join(model, 'config.json'), JSON.stringify(shape));
    const shared = { model, adapters: directory.join('adapters'), rank: 8 };
    await refuseUnsharedFolder(found, shared);
    expect(engine.counts).toMatchObject({ loads: [expect.any(String)], unloads: [expect.any(String)] });
    await expect(refuseUnsharedFolder(found, { ...shared, rank: 65 })).rejects.toThrow('no adapter of rank 65');
    engine.settings.faults = { loadStatus: 404 };
    await expect(refuseUnsharedFolder(found, shared)).rejects.toThrow(
      `it does not see ${shared.adapters}, where versions are put for it: share that folder`,
    );
  });
});

/** What SGLang answers, by its documented shapes; other paths it does not know. */
const sglangAnswers: Readonly<Record<string, readonly [number, object]>> = {
  '/v1/models': [200, { data: [{ id: 'base', max_model_len: 4_096 }] }],
  '/v1/chat/completions': [
    200,
    {
      model: 'base',
      choices: [
        {
          index: 0,
          message: { role: 'assistant', content: 'Hi' },
          finish_reason: 'stop',
          prompt_token_ids: [1, 9, 4],
          meta_info: { prompt_tokens: 3, completion_tokens: 1, output_token_logprobs: [[-0.5, 11, 'Hi']] },
        },
      ],
      usage: { prompt_tokens: 3, completion_tokens: 1, total_tokens: 4 },
    },
  ],
  '/generate': [
    200,
    {
      text: 'x',
      meta_info: {
        input_token_logprobs: [
          [null, 4, null],
          [-0.5, 11, null],
        ],
      },
    },
  ],
  '/load_lora_adapter': [400, { success: false, error_message: 'does not exist' }],
  '/tokenize': [200, { tokens: [11] }],
};

/** Without ids, as in many releases. */
const frame = { model: 'base', choices: [{ index: 0, delta: { content: 'Hi' }, finish_reason: 'stop' }] };
const streamed = `data: ${JSON.stringify(frame)}\n\ndata: [DONE]\n\n`;

it('an engine that speaks as SGLang does is known by what it can do', async () => {
  const port = await freePort();
  const server = createServer((request, response) => {
    const [status, body] = sglangAnswers[request.url ?? ''] ?? [404, { detail: 'Not Found' }];
    let asked = '';
    request.on('data', (chunk: Buffer) => (asked += chunk.toString()));
    request.on('end', () =>
      response.writeHead(status).end(asked.includes('"stream":true') ? streamed : JSON.stringify(body)),
    );
  });
  await new Promise<void>((resolve) => server.listen(port, '127.0.0.1', resolve));
  const url = `http://127.0.0.1:${String(port)}/v1`;
  const found = await engineChoice(flags({ engine: url }), undefined, root);
  server.closeAllConnections();
  server.close();
  const known = { baseModel: 'base', contextTokens: 4_096, takesTools: true };
  expect(found).toEqual({ url, key: '', dialect: 'sglang', ...known });
});

describe('a choice from start to start', () => {
  const data = openDataFolder(directory.join('data'));
  const start = { data, ports: portsFrom(24_000), host: '127.0.0.1', policies: ['p'], secrets: loadSecrets(data.path) };

  it('an engine at an address is kept without its key, and the built-in one takes its place again', async () => {
    const found = await elsewhere();
    writeConnection({ ...start, engine: found });
    expect(readFileSync(data.connection, 'utf8')).not.toContain(key);
    expect(lastEngine(data)).toEqual({ url: engine.url, dialect: 'vllm', keyFile });
    expect(await engineChoice(flags({}), lastEngine(data), root)).toEqual(found);
    const back = await engineChoice(flags({ engine: 'builtin' }), lastEngine(data), root);
    writeConnection({ ...start, engine: back });
    expect(lastEngine(data)).toBeUndefined();
  });

  it('the start never sends the key of one address to another', async () => {
    const kept = { url: 'https://elsewhere/v1', dialect: 'vllm', keyFile } as const;
    const refused = engineChoice(flags({ engine: engine.url }), kept, root);
    await expect(refused).rejects.toThrow('it asks for a key');
  });

  it('a device is kept where a start was told one, and vLLM as a word', () => {
    installVllm();
    writeConnection({ ...start, engine: 'vllm', device: { said: 'cuda' } });
    expect([lastEngine(data), lastDevice(data)]).toEqual(['vllm', 'cuda']);
    writeConnection({ ...start, device: { said: undefined } });
    expect([lastEngine(data), lastDevice(data)]).toEqual([undefined, undefined]);
    rmSync(join(root, '.venv'), { recursive: true });
  });

  const processesOf = (more: Partial<Parameters<typeof machineProcesses>[0]>) => {
    mkdirSync(join(root, '.venv', 'lib'), { recursive: true });
    const machine = { ...start, root, model: '/m', environment: {} };
    const { servers, workers, services } = machineProcesses({ ...machine, ...more });
    return new Map([...servers, ...workers, ...services].map((spec) => [spec.name, spec]));
  };

  const other = {
    name: 'other',
    recipe: 'small',
    contextTokens: 64,
    kvTokens: 64,
    kvBytes: 64,
    sampleTokens: 64,
  } as const;

  it('the laptop’s own model is sampled so that its first answers make sense, and no other model is', () => {
    const temperature = (more: Parameters<typeof processesOf>[0]) =>
      Number(processesOf(more).get('gateway')?.env['BACKTALK_TEMPERATURE']);
    expect(temperature({})).toBeLessThanOrEqual(0.5);
    expect(temperature({ environment: { BACKTALK_TEMPERATURE: '0.9' } })).toBe(0.9);
    expect(temperature({ base: other })).toBeNaN();
  });

  it('a base that is not the laptop’s, and a teacher, has as long to load as vLLM has', () => {
    const vllm = processesOf({ engine: 'vllm' }).get('engine')?.readyWithinMs ?? 0;
    const waits = (more: Parameters<typeof processesOf>[0]) =>
      ['engine', 'training-worker'].map((name) => processesOf(more).get(name)?.readyWithinMs);
    for (const more of [{ base: other }, { teacher: '/teacher' }]) expect(waits(more)).toEqual([vllm, vllm]);
    for (const wait of waits({})) expect(wait).toBeLessThan(vllm);
    expect(processesOf({ base: other }).get('gateway')?.readyWithinMs).toBeGreaterThanOrEqual(vllm);
  });

  it('an engine elsewhere gets no process here; who asks engines has its key, and collector and training worker have not', async () => {
    const far = { ...(await elsewhere()), url: 'https://far:8000/v1', dialect: 'sglang' } as const;
    const processes = processesOf({ engine: far });
    expect(processes.has('engine')).toBe(false);
    expect(processes.get('loader')?.env).toMatchObject({
      BACKTALK_ENGINE_URL: 'https://far:8000',
      BACKTALK_ENGINE_DIALECT: 'sglang',
      BACKTALK_LORA_RANK: '8',
    });
    expect(processes.get('gateway')?.env).toMatchObject({ BACKTALK_ENGINE_HOSTS: 'far' });
    expect(processes.get('publisher')?.env).toMatchObject({ BACKTALK_PARITY_MAX: '0.06' });
    const holders = [...processes.values()].filter(({ env }) => Object.values(env).includes(key));
    expect(holders.map(({ name }) => name)).toEqual(['loader', 'publisher', 'gateway', 'judge', 'trainer']);
    expect([...processes.values()].flatMap(({ args }) => args).join(' ')).not.toContain(key);
  });

  it('vLLM is started here with what swaps need, its key in no argument, and the parser of its template’s calls', () => {
    const answers = 'calls as llama (its template writes {…})';
    const environment = { BACKTALK_RECIPE_SET: 'effective=2,loraRank=16' };
    const spec = processesOf({ engine: 'vllm', answers, environment }).get('engine');
    const flags = ['--enable-lora', '--max-loras=4', '--max-lora-rank=16', '--tool-call-parser=llama3_json'];
    expect(spec?.args).toEqual(expect.arrayContaining([...flags, '--served-model-name=smollm2-135m-wishes']));
    const { engineKey } = start.secrets;
    expect(spec?.env).toMatchObject({ VLLM_API_KEY: engineKey, VLLM_ALLOW_RUNTIME_LORA_UPDATING: 'True' });
    expect(spec?.args.join(' ')).not.toContain(engineKey);
  });

  it.each([
    ['cuda', 'builtin', 'float32'],
    ['cuda', 'far', 'bfloat16'],
    ['cpu', 'far', 'float32'],
  ] as const)('steps on %s beside the engine %s compute in %s', async (device, name, dtype) => {
    const spec = processesOf({ device, engine: name === 'far' ? await elsewhere() : name }).get('training-worker');
    expect(spec?.env).toMatchObject({ BACKTALK_DEVICE: device, BACKTALK_DTYPE: dtype });
  });
});
