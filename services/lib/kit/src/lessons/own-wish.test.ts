import { describe, expect, it } from 'vitest';
import { asWording, wordingCharsMax } from './own-wish.js';

describe('a wording', () => {
  it('a long wording ends with a whole word', () => {
    const wording = asWording('answer briefly '.repeat(20));
    expect(wording.length).toBeLessThanOrEqual(wordingCharsMax);
    expect(wording).toMatch(/(answer|briefly)$/);
  });

  it('a long wording in a script without spaces keeps all that has room', () => {
    const chinese = `请以后都用 Markdown 回答，${'并且每一段都要先给结论再给理由'.repeat(20)}`;
    expect(asWording(chinese)).toBe(chinese.slice(0, wordingCharsMax));
  });

  it('a long wording is not cut in the middle of a character', () => {
    expect(asWording(`a${'😀'.repeat(200)}`)).toBe(`a${'😀'.repeat(99)}`);
  });
});
