import { mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { modelConfig, parametersOf, type Quantization } from '@backtalk/kit';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { cardsOfFlag } from './box-cards.js';
import { boxPlan } from './box-plan.js';
import { lastQuantization, writeConnection } from './connection.js';
import { openDataFolder } from './data-folder.js';
import { readOptions } from './options.js';
import { portsFrom } from './ports.js';
import { chosenQuantization, refuseEngine, refuseOtherQuantization } from './quantization.js';
import { machineProcesses } from './processes.js';
import { loadSecrets } from './secrets.js';

let root = '';

beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), 'backtalk-quantization-'));
  mkdirSync(join(root, '.venv', 'lib', 'python3.11'), { recursive: true });
});
afterEach(() => {
  rmSync(root, { recursive: true });
});

/** Qwen3-8B's. */
const shape = modelConfig.parse({
  architectures: ['Qwen3ForCausalLM'],
  max_position_embeddings: 40_960,
  vocab_size: 151_936,
  hidden_size: 4_096,
  intermediate_size: 12_288,
  num_hidden_layers: 36,
  num_attention_heads: 32,
  num_key_value_heads: 8,
  head_dim: 128,
  tie_word_embeddings: false,
});
const model = { name: 'qwen3-8b', folder: '/models/qwen3-8b', shape, parameters: parametersOf(shape) ?? 0 };
const planned = (quantization: Quantization) =>
  boxPlan({ cards: cardsOfFlag('1x24GB'), said: {}, model, rank: 16, policies: 1, trainsOnCard: true, quantization });

function startIn(folder: string) {
  const data = openDataFolder(join(root, folder));
  const policies = ['backtalk'];
  return { data, ports: portsFrom(30000), secrets: loadSecrets(data.path), host: '127.0.0.1', policies };
}

describe('a base in four bits', () => {
  it('the option is none or nf4, and nothing where it was not given', () => {
    expect(readOptions(['--quantization', 'nf4'], root).quantization).toBe('nf4');
    expect(readOptions([], root).quantization).toBeUndefined();
    expect(() => readOptions(['--quantization', 'int4'], root)).toThrow("--quantization 'int4' is not none or nf4.");
  });

  it('one start’s numbers are those of the next, and others are refused', () => {
    const start = startIn('data');
    // Nothing was learned yet.
    refuseOtherQuantization(start.data, 'nf4');
    writeConnection({ ...start, quantization: 'nf4' });
    expect(lastQuantization(start.data)).toBe('nf4');
    expect(chosenQuantization(undefined, start.data, {})).toBe('nf4');
    // Nothing was learned in the start before, whatever became of it.
    refuseOtherQuantization(start.data, 'none');
    mkdirSync(join(start.data.adapters, 'backtalk-v1-0123456789abcdef'), { recursive: true });
    refuseOtherQuantization(start.data, 'nf4');
    expect(() => refuseOtherQuantization(start.data, 'none')).toThrow(
      /belongs to a base with --quantization nf4, and this start has none: leave the option out/,
    );
    writeConnection(start);
    expect(lastQuantization(start.data)).toBe('none');
    expect(() => refuseOtherQuantization(start.data, 'nf4')).toThrow(/with --quantization none/);
  });

  it.each([
    ['BACKTALK_TRAINING_BACKEND', 'tinker', /a training service holds the base itself/],
    ['BACKTALK_TRAINING_SHARDING', 'on', /BACKTALK_TRAINING_SHARDING is off then/],
    ['BACKTALK_DTYPE', 'float64', /BACKTALK_DTYPE is one of them then/],
  ])('%s=%s refuses it before anything starts', (name, value, why) => {
    const { data } = startIn('data');
    expect(() => chosenQuantization('nf4', data, { [name]: value })).toThrow(why);
    expect(chosenQuantization('none', data, { [name]: value })).toBe('none');
  });

  it('engines that hold no such base are refused', () => {
    const sglang = {
      url: 'http://there',
      dialect: 'sglang',
      key: '',
      baseModel: 'm',
      contextTokens: 0,
      takesTools: true,
    } as const;
    expect(() => refuseEngine('vllm', 'nf4')).toThrow(/vLLM's CPU build serves no such base/);
    expect(() => refuseEngine(sglang, 'nf4')).toThrow(/an SGLang answers at that address/);
    for (const engine of ['builtin', { ...sglang, dialect: 'vllm' }] as const) refuseEngine(engine, 'nf4');
    refuseEngine('vllm', 'none');
  });

  it('engine and training worker hold it alike', () => {
    const variablesOf = (quantization?: Quantization) => {
      const start = { ...startIn('data'), root, model: '/m', environment: { BACKTALK_QUANTIZATION: 'nf4' } };
      const { workers } = machineProcesses({ ...start, quantization });
      return Object.assign({}, ...workers.map(({ env }) => env)) as Record<string, string>;
    };
    for (const how of ['nf4', 'none'] as const)
      expect(variablesOf(how)).toMatchObject({ BACKTALK_ENGINE_QUANTIZATION: how, BACKTALK_QUANTIZATION: how });
    // What one of them alone is told by the environment would part them.
    expect(variablesOf()).toMatchObject({ BACKTALK_ENGINE_QUANTIZATION: 'none', BACKTALK_QUANTIZATION: 'none' });
  });

  it('a card of 24 GB serves and trains a model of 8B, which it does not hold whole', () => {
    expect(() => planned('none')).toThrow(/^--profile gpu: a step of qwen3-8b with samples of 1024 tokens needs /);
    const box = planned('nf4');
    expect(box.engines).toHaveLength(1);
    expect(box.training?.cards).toEqual([0]);
    const start = { ...startIn('data'), root, model: model.folder, environment: {}, device: 'cuda', box } as const;
    const [engine] = machineProcesses({ ...start, engine: 'vllm', quantization: 'nf4' }).workers;
    expect(engine?.args).toContain('--quantization=bitsandbytes');
    expect(machineProcesses({ ...start, engine: 'vllm' }).workers[0]?.args).not.toContain(
      '--quantization=bitsandbytes',
    );
  });
});
