import { describe, expect, it } from 'vitest';
import { captureOf } from './chat-wire.js';

const usageOf = (usage: object) => captureOf({ choices: [{ message: { content: 'Yes.' } }], usage }).usage;

describe('what an engine tells of its tokens', () => {
  it('thoughts that stand in the total alone are tokens of the answer', () => {
    const apart = { prompt_tokens: 20, completion_tokens: 10, total_tokens: 500 };
    expect(usageOf(apart)).toEqual({ promptTokens: 20, completionTokens: 480 });
    const within = { prompt_tokens: 20, completion_tokens: 480, total_tokens: 500 };
    expect(usageOf(within)).toEqual({ promptTokens: 20, completionTokens: 480 });
    expect(usageOf({ prompt_tokens: 20, completion_tokens: 480 })).toEqual({ promptTokens: 20, completionTokens: 480 });
  });

  it('tokens of the cache that are more than the prompt’s stand beside them', () => {
    const beside = { prompt_tokens: 40, completion_tokens: 1, prompt_tokens_details: { cached_tokens: 60 } };
    expect(usageOf(beside)).toEqual({ promptTokens: 100, cachedTokens: 60, completionTokens: 1 });
    const total = { ...beside, total_tokens: 101 };
    expect(usageOf(total)).toEqual({ promptTokens: 100, cachedTokens: 60, completionTokens: 1 });
  });

  it('what is no count is none', () => {
    const odd = { prompt_tokens: '40', completion_tokens: -1, prompt_tokens_details: { cached_tokens: Number.NaN } };
    expect(usageOf(odd)).toEqual({ promptTokens: 0, cachedTokens: 0, completionTokens: 0 });
    expect(usageOf({})).toEqual({ promptTokens: 0, completionTokens: 0 });
  });
});
