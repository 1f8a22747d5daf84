import { mkdirSync, writeFileSync } from 'node:fs';
import { TemporaryDirectory } from '@backtalk/kit/testing';
import { afterAll, expect, it } from 'vitest';
import type { Output } from '../output.js';
import { fit, type FitFlags } from './fit.js';

const directory = new TemporaryDirectory('fit');
afterAll(() => {
  directory.remove();
});

const config = {
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
const { architectures: _, ...fields } = config;
const list = Object.entries(fields)
  .map(([name, value]) => `${name}=${String(value)}`)
  .join(',');

function folderOf(content: string): string {
  mkdirSync(directory.join('model'), { recursive: true });
  writeFileSync(directory.join('model/config.json'), content);
  return directory.join('model');
}

function fitted(model: string, flags: Partial<FitFlags> = {}) {
  const values: unknown[] = [];
  const lines: string[] = [];
  const output: Output = {
    json: false,
    line: (text = '') => lines.push(text),
    piece: () => undefined,
    table: (header, rows) => lines.push(...[header, ...rows].map((row) => row.join(' | '))),
    value: (value) => values.push(value),
    progress: () => ({ update: () => undefined, stop: () => undefined }),
    complain: () => undefined,
  };
  fit(output, model, { gpu: 80e9, conversations: 2, ...flags });
  return { value: values[0], text: lines.join('\n') };
}

it('reads a folder, a config.json and a list of its fields alike, and says which recipe it reckons with', () => {
  const folder = folderOf(JSON.stringify(config));
  const { value, text } = fitted(folder);
  expect(fitted(`${folder}/config.json`).value).toEqual(value);
  expect(fitted(list).value).toEqual(value);
  expect(value).toMatchObject({ parameters: 4_022_468_096, recipe: 'small', sampleTokens: 32_768, rank: 16 });
  expect(text).toContain('training | weights | 8.0 GB');
});

it('says that linear layers are in four bits, and reckons with them', () => {
  const { value, text } = fitted(list, { quantization: 'nf4' });
  expect(value).toMatchObject({ quantization: 'nf4' });
  expect(text).toContain('4.02B parameters, linear layers in 4 bits, recipe small');
  expect(text).toContain('training | weights | 2.7 GB');
});

it('reckons the judge’s part with the judge’s own model', () => {
  const half = list.replace('num_hidden_layers=36', 'num_hidden_layers=18');
  const { value } = fitted(list, { judge: half });
  const same = fitted(list).value;
  const { judge } = fitted(half).value as { judge: object };
  expect(value).toMatchObject({ judge });
  expect(same).not.toEqual(value);
});

it.each([
  ['no-such-model', /no-such-model cannot be reckoned with: it is no folder with a config\.json/],
  [list.replace('hidden_size=2560', 'hidden_size=much'), /its config gives hidden_size wrongly or not at all/],
  [list.replace(/vocab_size=\d+,/, ''), /its config gives no vocab_size/],
  [`${list},architectures=x`, /its config gives architectures wrongly/],
  [`${list},final_logit_softcapping=30`, /it caps its logits/],
])('refuses %s in one line', (model, words) => {
  expect(() => fitted(model)).toThrow(words);
});

it('refuses a config.json that is cut, and a context that the model does not have', () => {
  expect(() => fitted(folderOf('{"hidden_size"'))).toThrow(/model cannot be reckoned with: it is no folder/);
  expect(() => fitted(list, { context: 50_000 })).toThrow("--context '50000' is not up to 40960.");
});
