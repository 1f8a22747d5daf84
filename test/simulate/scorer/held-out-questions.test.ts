import { describe, expect, it } from 'vitest';
import { heldOutQuestions } from './held-out-questions.js';

describe('held-out questions', () => {
  it('the held-out questions are 64 different ones, in two blocks of 32', () => {
    expect(heldOutQuestions).toHaveLength(64);
    expect(new Set(heldOutQuestions).size).toBe(64);
  });
});
