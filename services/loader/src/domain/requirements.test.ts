import type { Capabilities } from '@backtalk/dialects';
import { describe, expect, it } from 'vitest';
import { misfitOf, servesPolicies } from './requirements.js';

const engine: Capabilities = { baseModel: 'base', maxContext: 8192, names: ['adapters', 'token_ids', 'logprobs'] };
const needs = { engineDialect: 'vllm', baseModel: 'base', contextMin: 8192 };

describe('misfitOf', () => {
  it('takes an engine that fits', () => {
    expect(misfitOf(engine, needs)).toBeUndefined();
    expect(misfitOf(engine, { ...needs, baseModel: '', contextMin: 0 })).toBeUndefined();
  });

  it('refuses an engine with another model, a shorter context or no adapters, and names both sides', () => {
    expect(misfitOf({ ...engine, baseModel: 'other' }, needs)).toMatch(/other.*base/);
    expect(misfitOf({ ...engine, maxContext: 4096 }, needs)).toMatch(/4096.*8192/);
    expect(misfitOf({ ...engine, names: ['token_ids'] }, needs)).toMatch(/adapters/);
  });

  it('takes an engine that lacks ids or logprobs: its turns are not trained on', () => {
    expect(misfitOf({ ...engine, names: ['adapters'] }, needs)).toBeUndefined();
    expect(misfitOf({ ...engine, names: [] }, { ...needs, engineDialect: 'openai' })).toBeUndefined();
  });

  it('takes an engine that only judges for one that serves no policy', () => {
    expect(servesPolicies(['judge'])).toBe(false);
    expect(servesPolicies(['judge', 'serving'])).toBe(true);
    expect(servesPolicies(['evaluation'])).toBe(true);
  });
});
