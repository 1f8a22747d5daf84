import { describe, expect, it } from 'vitest';
import { heldOutQuestions } from './scorer/held-out-questions.js';
import { everydayQuestions } from './user/questions.js';

describe('the questions of user and scorer', () => {
  it('the questions of user and scorer have none in common', () => {
    const known = new Set(everydayQuestions.map((question) => question.toLowerCase()));
    expect(heldOutQuestions.filter((question) => known.has(question.toLowerCase()))).toEqual([]);
  });
});
