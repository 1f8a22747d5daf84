// The arithmetic on a config.json, against models that transformers and peft build from the same file.
import { execFileSync } from 'node:child_process';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { z } from 'zod';
import { pythonEnvironment } from '../testing/python-environment.js';
import { adapterParameters, modelConfig, parametersOf } from './model-config.js';

const shape = {
  hidden_size: 96,
  intermediate_size: 160,
  num_hidden_layers: 3,
  num_attention_heads: 6,
  num_key_value_heads: 2,
  head_dim: 24,
  vocab_size: 320,
  max_position_embeddings: 2_048,
};
const configs = [
  { model_type: 'llama', architectures: ['LlamaForCausalLM'], ...shape },
  { model_type: 'llama', architectures: ['LlamaForCausalLM'], ...shape, attention_bias: true, mlp_bias: true },
  { model_type: 'mistral', architectures: ['MistralForCausalLM'], ...shape, tie_word_embeddings: true },
  { model_type: 'qwen2', architectures: ['Qwen2ForCausalLM'], ...shape, head_dim: undefined },
  { model_type: 'qwen3', architectures: ['Qwen3ForCausalLM'], ...shape },
  { model_type: 'gemma3_text', architectures: ['Gemma3ForCausalLM'], ...shape },
];
const rank = 4;

const program = `
import json, sys, torch
from peft import LoraConfig, get_peft_model
from transformers import AutoConfig, AutoModelForCausalLM
from backtalk_worker.training.domain.adapter import linear_modules
found = []
for fields in json.load(sys.stdin):
    with torch.device("meta"):
        model = AutoModelForCausalLM.from_config(AutoConfig.for_model(**fields))
        whole = sum(one.numel() for one in model.parameters())
        lora = LoraConfig(r=${rank}, target_modules=list(linear_modules(model)), task_type="CAUSAL_LM")
        wrapped = get_peft_model(model, lora)
    found.append([whole, sum(one.numel() for one in wrapped.parameters() if one.requires_grad)])
print(json.dumps(found))
`;

it('counts parameters of models and adapters as transformers and peft build them, in all architectures', () => {
  const python = join(pythonEnvironment(), 'bin', 'python');
  const options = { input: JSON.stringify(configs), encoding: 'utf8', timeout: 110_000, stdio: 'pipe' } as const;
  const built = z
    .array(z.tuple([z.number(), z.number()]))
    .parse(JSON.parse(execFileSync(python, ['-W', 'ignore', '-c', program], options)));
  const read = configs.map((config) => modelConfig.parse(config));
  expect(read.map((config) => [parametersOf(config), adapterParameters(config, rank)])).toEqual(built);
}, 120_000);

it('leaves the count open where config.json states no vocabulary', () => {
  const [config] = configs;
  expect(parametersOf(modelConfig.parse({ ...config, vocab_size: undefined }))).toBeUndefined();
});
