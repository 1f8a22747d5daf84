import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { freePort, repositoryRoot, TemporaryDirectory } from '@backtalk/kit/testing';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { readBaseModel } from './base-model.js';
import { fetchHubModel, modelPlace, type HubFetch } from './hub-model.js';

const directory = new TemporaryDirectory('hub-model');
const models = directory.join('models');
const root = repositoryRoot();
const worker = join(root, 'services', 'worker');
const python = join(root, '.venv', 'bin', 'python');
const roomy = 64e9;

let hub: ChildProcess;
let environment: Record<string, string>;
let said: string[];

const shape = { hidden_size: 64, intermediate_size: 128, num_hidden_layers: 2, num_attention_heads: 4 };

/** A folder in Hugging Face's layout with weights that only their header describes. */
function makeModel(name: string, more: object): string {
  const folder = directory.join('made', name);
  mkdirSync(folder, { recursive: true });
  const config = { architectures: ['LlamaForCausalLM'], max_position_embeddings: 4_096, ...shape, ...more };
  const header = Buffer.from(JSON.stringify({ layer: { dtype: 'F32', shape: [1_000, 1_000], data_offsets: [0, 0] } }));
  const length = Buffer.alloc(8);
  length.writeBigUInt64LE(BigInt(header.byteLength));
  const files = {
    'config.json': JSON.stringify(config),
    'tokenizer.json': '{}',
    'chat_template.jinja': '{{ messages }}',
    'model.safetensors': Buffer.concat([length, header, Buffer.alloc(2_000)]),
  };
  for (const [file, content] of Object.entries(files)) writeFileSync(join(folder, file), content);
  return `maker/${name}=${folder}`;
}

beforeAll(async () => {
  const port = await freePort();
  const made = [makeModel('tiny', {}), makeModel('mamba', { architectures: ['MambaForCausalLM'] })];
  const server = join(worker, 'tests', 'model', 'hub_server.py');
  hub = spawn(python, [server, String(port), ...made], { stdio: ['pipe', 'pipe', 'inherit'] });
  const [line] = (await once(hub.stdout ?? hub, 'data')) as [Buffer];
  environment = {
    PATH: '/usr/bin:/bin',
    PYTHONPATH: join(worker, 'src'),
    HF_HOME: directory.join('home'),
    HF_ENDPOINT: line.toString().trim(),
  };
});

afterAll(() => {
  hub.kill('SIGKILL');
  directory.remove();
});

beforeEach(() => {
  said = [];
  rmSync(models, { recursive: true, force: true });
});

const fetched = (id: string, more: Partial<HubFetch> = {}) =>
  fetchHubModel({
    root,
    models,
    id,
    room: { freeBytes: roomy },
    environment,
    signal: new AbortController().signal,
    terminal: { step: (text) => said.push(text) },
    ...more,
  });

describe('a model at the hub', () => {
  it('a model that was fetched is served from its folder, and asked for no more', async () => {
    const folder = await fetched('maker/tiny');
    expect(readBaseModel(folder, { freeBytes: roomy })).toMatchObject({ name: 'tiny', contextTokens: 4_096 });
    expect(said[0]).toContain('maker/tiny: fetching revision 5fd1a4b05fd1, 0 MB');
    expect(said.at(-1)).toBe('maker/tiny: 0 of 0 MB');
    expect(JSON.parse(readFileSync(`${folder}.json`, 'utf8'))).toEqual({
      revision: '5fd1a4b0'.repeat(5),
      complete: true,
    });
    expect(await fetched('maker/tiny', { environment: { HF_ENDPOINT: 'http://127.0.0.1:9' } })).toBe(folder);
  });

  it('a model that was begun with goes on at the revision of its beginning', async () => {
    const folder = await fetched('maker/tiny');
    writeFileSync(`${folder}.json`, JSON.stringify({ revision: 'b'.repeat(40), complete: false }));
    await expect(fetched('maker/tiny')).rejects.toThrow('no longer has the revision that was begun with');
  });

  it('a model whose record was cut off is fetched anew, whatever lies there', async () => {
    const folder = await fetched('maker/tiny');
    writeFileSync(`${folder}.json`, '');
    writeFileSync(join(folder, 'config.json'), 'of another revision');
    expect(await fetched('maker/tiny')).toBe(folder);
    expect(readBaseModel(folder, { freeBytes: roomy }).name).toBe('tiny');
  });

  it('a model that cannot be served is refused before its weights come', async () => {
    await expect(fetched('maker/mamba')).rejects.toThrow(
      /cannot be served: .* its architecture is MambaForCausalLM\.$/,
    );
    expect(existsSync(join(models, 'maker', 'mamba', 'config.json'))).toBe(true);
    expect(existsSync(join(models, 'maker', 'mamba', 'model.safetensors'))).toBe(false);
  });

  it.each<[string, string, Partial<HubFetch>, RegExp]>([
    ['is not there', 'maker/none', {}, /^The model maker\/none cannot be fetched: http.* has no such model.*\.$/],
    ['was stopped', 'maker/tiny', { signal: AbortSignal.abort() }, /the next one goes on where it ended\.$/],
    ['lacks Python', 'maker/tiny', { root: '/nowhere' }, /its files could not be asked for\.$/],
  ])('a model that %s is refused in one line', async (_, id, more, words) => {
    await expect(fetched(id, more)).rejects.toThrow(words);
  });
});

it('a folder that exists is a folder, and what else has the form owner/name is an id', () => {
  mkdirSync(directory.join('Qwen', 'Qwen3-0.6B'), { recursive: true });
  const at = directory.path;
  expect(modelPlace('Qwen/Qwen3-0.6B', at)).toEqual({ folder: directory.join('Qwen', 'Qwen3-0.6B') });
  expect(modelPlace('Qwen/Qwen3-1.7B', at)).toEqual({ hub: 'Qwen/Qwen3-1.7B' });
  expect(modelPlace('./Qwen/none', at)).toEqual({ folder: join(at, 'Qwen', 'none') });
  expect(modelPlace('/models/none', dirname(at))).toEqual({ folder: '/models/none' });
  expect(modelPlace('none', at)).toEqual({ folder: join(at, 'none') });
});
