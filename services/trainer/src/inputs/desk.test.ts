import { describe, expect, it } from 'vitest';
import { BatchChain } from '../domain/batch-chain.js';
import { SettledTurns } from '../domain/settled-turns.js';
import { VersionLine } from '../domain/version-line.js';
import { Desk } from './desk.js';

const books = () => ({ chain: new BatchChain('p'), line: new VersionLine('p'), settled: new SettledTurns() });

describe('a desk', () => {
  it('gives the books that were read last, to those who asked while they were read again, too', async () => {
    const desk = new Desk('p');
    const early = desk.openBooks();
    const [first, second] = [books(), books()];
    desk.open(first);
    expect(await early).toBe(first);
    desk.shut();
    const meanwhile = desk.openBooks();
    desk.open(second);
    expect(await meanwhile).toBe(second);
    expect(await desk.openBooks()).toBe(second);
  });

  it('leaves nobody waiting for books that are not read any more', async () => {
    const desk = new Desk('p');
    desk.open(books());
    desk.shut();
    const waiting = desk.openBooks();
    desk.leave();
    await expect(waiting).rejects.toMatchObject({ code: 'not_leading', retry: 'later' });
    await expect(desk.openBooks()).rejects.toMatchObject({ code: 'not_leading' });
  });
});
