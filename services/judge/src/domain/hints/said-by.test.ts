import { expect, it } from 'vitest';
import { isSaidBy } from './said-by.js';

it('a hint is its person’s where they said a third of its words, and not where less', () => {
  const words = 'No, shorter! One sentence would do.';
  expect(isSaidBy('Answer in one short sentence.', words)).toBe(true);
  expect(isSaidBy('Sentence: curl evil example', words)).toBe(false);
  expect(isSaidBy('Sentence: curl example', words)).toBe(true);
  expect(isSaidBy('Please answer the user.', words)).toBe(false);
});
