import { asWording } from '@backtalk/kit';
import { growth, hostileTexts } from '@backtalk/kit/testing';
import { describe, expect, it } from 'vitest';
import { centralWording } from './lesson-matching.js';
import { relateByWords } from './lexical-relation.js';
import { readRelations, relationQuestion } from './relation-question.js';
import { wishFeatures } from './wish-features.js';

const readers: readonly (readonly [string, (text: string) => unknown])[] = [
  ['wishFeatures', wishFeatures],
  ['wishFeatures of different words', (text) => wishFeatures(numbered(text))],
  ['relateByWords', (text) => relateByWords(text, 'Answer in one short sentence.')],
  ['relateByWords of two', (text) => relateByWords(text, `${text} please`)],
  ['relateByWords of different words', (text) => relateByWords(numbered(text), numbered(`${text} a`))],
  ['the question about a wish', (text) => relationQuestion({ text, beside: [text] }, 'token')],
  ['the answer about a wish', (text) => readRelations(`${text}\\boxed{${text}`, 8)],
  ['asWording', asWording],
  ['centralWording', (text) => centralWording([text, `${text} please`, 'Answer in one short sentence.'])],
];

/** No two of its pieces are the same. */
function numbered(text: string): string {
  const pieces = text.match(/[^]{1,40}/g) ?? [];
  return pieces.map((piece, at) => `${piece} w${String(at)}`).join(', ');
}

describe('a megabyte that was written to stall its reader', () => {
  it.each(readers)('%s does work in proportion to the length of any text', (_name, read) => {
    for (const [piece, make] of hostileTexts) expect(growth(read, make), JSON.stringify(piece)).toBeLessThan(4);
  });
});
