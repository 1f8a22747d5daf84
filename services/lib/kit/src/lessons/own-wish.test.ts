import { describe, expect, it } from 'vitest';
import { asWording, wordingCharsMax } from './own-wish.js';

describe('a wording', () => {
  it('a long wording ends with a whole word', () => {
    const wording = asWording('answer briefly '.repeat(20));
    expect(wording.length).toBeLessThanOrEqual(wordingCharsMax);
    expect(wording).toMatch(/(answer|briefly)$/);
  });

  it('a long wording in a script without spaces keeps all words that have room', () => {
    const chinese = `请以后都用 Markdown 回答，${'并且每一段都要先给结论再给理由'.repeat(20)}`;
    const wording = asWording(chinese);
    expect(chinese.startsWith(wording)).toBe(true);
    expect(wording.length).toBeGreaterThan(wordingCharsMax - 5);
  });

  it.each([
    ['Khmer', ['សូម', 'ប្រើ', 'គីឡូម៉ែត្រ']],
    ['Lao', ['ກະລຸນາ', 'ໃຊ້', 'ກິໂລແມັດ']],
    ['Burmese', ['ကီလိုမီတာ', 'နဲ့', 'ဖြေ', 'ပါ']],
    ['Thai', ['กรุณา', 'ใช้', 'กิโลเมตร']],
  ])('a long wording in %s ends with a whole word', (_name, words) => {
    const wording = asWording(words.join('').repeat(20));
    expect(wording.length).toBeGreaterThan(wordingCharsMax - 15);
    expect(words.some((word) => wording.endsWith(word))).toBe(true);
  });

  it('a word that is longer than words are is cut, and takes nothing before it along', () => {
    expect(asWording(`say ${'b'.repeat(400)}`)).toBe(`say ${'b'.repeat(wordingCharsMax - 4)}`);
  });

  it('a long wording is not cut in the middle of a character', () => {
    expect(asWording(`a${'😀'.repeat(200)}`)).toBe(`a${'😀'.repeat(99)}`);
  });
});
