import { describe, expect, it } from 'vitest';
import type { Capture } from './capture.js';
import { judgeCapture } from './invariants.js';

const good: Capture = {
  promptIds: [1, 2, 3],
  answerIds: [4, 5],
  logprobs: [-0.5, -1],
  text: 'hi',
  reasoning: '',
  toolCalls: [],
  finishReason: 'stop',
  usage: { promptTokens: 3, completionTokens: 2 },
  choices: 1,
  modelAtStart: 'base',
  modelAtEnd: 'base',
};

describe('judgeCapture', () => {
  it('passes an answer whose ids, logprobs and counts agree', () => {
    expect(judgeCapture(good)).toEqual({ trainable: true, reasons: [] });
  });

  it.each<[string, Partial<Capture>]>([
    ['no_prompt_ids', { promptIds: undefined }],
    ['no_token_ids', { answerIds: [] }],
    ['no_logprobs', { logprobs: [] }],
    ['no_usage', { usage: undefined }],
    ['count_mismatch', { answerIds: [4] }],
    ['count_mismatch', { usage: { promptTokens: 3, completionTokens: 3 } }],
    ['count_mismatch', { usage: { promptTokens: 4, completionTokens: 2 } }],
    ['logprob_not_finite', { logprobs: [-0.5, -9999] }],
    ['logprob_not_finite', { logprobs: [-0.5, Number.NaN] }],
    ['aborted', { finishReason: 'abort' }],
    ['incomplete', { finishReason: '' }],
    ['several_choices', { choices: 2 }],
  ])('refuses with %s', (reason, change) => {
    const verdict = judgeCapture({ ...good, ...change });
    expect(verdict.trainable).toBe(false);
    expect(verdict.reasons).toContain(reason);
  });

  it('trains on an answer that the cap cut', () => {
    expect(judgeCapture({ ...good, finishReason: 'length' }).trainable).toBe(true);
  });
});
