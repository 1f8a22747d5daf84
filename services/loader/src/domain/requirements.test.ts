import type { Capabilities } from '@backtalk/dialects';
import { describe, expect, it } from 'vitest';
import { misfitOf, servesPolicies } from './requirements.js';

const engine: Capabilities = { baseModel: 'base', maxContext: 8192, names: ['adapters', 'token_ids', 'logprobs'] };
const needs = { engineDialect: 'vllm', baseModel: 'base', contextMin: 8192 };

describe('an engine', () => {
  it('that fits is taken', () => {
    expect(misfitOf(engine, needs)).toBeUndefined();
    expect(misfitOf(engine, { ...needs, baseModel: '', contextMin: 0 })).toBeUndefined();
  });

  it('with another model, a shorter context or no adapters is refused, with both sides named', () => {
    expect(misfitOf({ ...engine, baseModel: 'other' }, needs)).toMatch(/other.*base/);
    expect(misfitOf({ ...engine, maxContext: 4096 }, needs)).toMatch(/4096.*8192/);
    expect(misfitOf({ ...engine, names: ['token_ids'] }, needs)).toMatch(/adapters/);
  });

  it('that lacks ids or logprobs is taken: its turns are not trained on', () => {
    expect(misfitOf({ ...engine, names: ['adapters'] }, needs)).toBeUndefined();
    expect(misfitOf({ ...engine, names: [] }, { ...needs, engineDialect: 'openai' })).toBeUndefined();
  });

  it('that only judges serves no policy', () => {
    expect(servesPolicies(['judge'])).toBe(false);
    expect(servesPolicies(['judge', 'serving'])).toBe(true);
    expect(servesPolicies(['evaluation'])).toBe(true);
  });
});
