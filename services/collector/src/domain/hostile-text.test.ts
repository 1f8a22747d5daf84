import { growth, hostileTexts } from '@backtalk/kit/testing';
import { describe, expect, it } from 'vitest';
import { isSideRequest, lastWordsOf, readMessages } from './messages.js';
import { nextStateOf, textsOf } from './next-state.js';

const said = (text: string) =>
  readMessages([
    { role: 'assistant', content: 'a' },
    { role: 'user', content: text },
  ]);

const readers: readonly (readonly [string, (text: string) => unknown])[] = [
  ['isSideRequest', (text) => isSideRequest('', said(`generate ${text}`))],
  ['lastWordsOf', (text) => lastWordsOf(said(text))],
  ['nextStateOf', (text) => nextStateOf(said(text), 0, '', textsOf(said(text)))],
];

describe('a megabyte that was written to stall its reader', () => {
  it.each(readers)('%s does work in proportion to the length of any text', (_name, read) => {
    for (const [piece, make] of hostileTexts) expect(growth(read, make), JSON.stringify(piece)).toBeLessThan(4);
  });
});
