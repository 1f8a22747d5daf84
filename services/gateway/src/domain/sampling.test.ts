import { describe, expect, it } from 'vitest';
import { samplingOf } from './sampling.js';

describe('samplingOf', () => {
  it('fills in the plain sampler, so that no generation config of a model decides', () => {
    const { fields, parameters } = samplingOf({}, 0.8);
    expect(fields).toEqual({ temperature: 0.8, top_p: 1, top_k: -1, min_p: 0 });
    expect(parameters).toEqual({ temperature: 0.8, topP: 1, topK: -1, minP: 0, maxTokens: 0, plain: true });
  });

  it('keeps a temperature of zero: it is plain, and serves distillation only', () => {
    expect(samplingOf({ temperature: 0 }, 0.8).parameters).toMatchObject({ temperature: 0, plain: true });
  });

  it('records the longest answer asked for, by either name', () => {
    expect(samplingOf({ max_tokens: 5 }, 1).parameters.maxTokens).toBe(5);
    expect(samplingOf({ max_tokens: 5, max_completion_tokens: 7 }, 1).parameters.maxTokens).toBe(7);
  });

  it.each([
    { top_p: 0.9 },
    { top_k: 40 },
    { min_p: 0.1 },
    { presence_penalty: 0.5 },
    { frequency_penalty: -1 },
    { repetition_penalty: 1.1 },
    { logit_bias: { '5': 10 } },
    { response_format: { type: 'json_object' } },
    { tool_choice: 'required' },
    { tool_choice: { type: 'function', function: { name: 'f' } } },
    { structured_outputs: { regex: 'a+' } },
    { thinking_token_budget: 64 },
  ])('leaves %j alone and marks the turn as not plain', (choice) => {
    const { fields, parameters } = samplingOf(choice, 0.8);
    expect(parameters.plain).toBe(false);
    expect({ ...choice, ...fields }).toMatchObject(choice);
  });

  it.each([
    { top_p: 1, top_k: 0, min_p: 0 },
    { tool_choice: 'auto' },
    { response_format: { type: 'text' } },
    { logit_bias: {} },
    { top_p: null, presence_penalty: null },
    { stop: ['\n'], seed: 4 },
  ])('takes %j as plain', (choice) => {
    expect(samplingOf(choice, 0.8).parameters.plain).toBe(true);
  });
});
