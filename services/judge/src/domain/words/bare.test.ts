import { expect, it } from 'vitest';
import { readIsBare } from '../../outputs/labelled-set.js';

const isBare = readIsBare();

it('words that only judge ask for nothing', () => {
  for (const words of ['Wrong again.', 'This is useless.', 'nein', 'That is not right!'])
    expect(isBare(words), words).toBe(true);
});

it('blame that says what is wanted is not bare', () => {
  for (const words of ['Wrong, use a numbered list.', 'Again, but in French.', 'Nein, bitte in Metern.', 'Too long.'])
    expect(isBare(words), words).toBe(false);
});
