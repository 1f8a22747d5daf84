import { describe, expect, it } from 'vitest';
import { BodyBudget, largeBodyBytes } from './body-budget.js';

const mebibyte = 1024 * 1024;

describe('BodyBudget', () => {
  it('gives one key half of the room, and gives it again once its requests are answered', () => {
    const budget = new BodyBudget(8 * mebibyte);
    const room = budget.room('a');
    room.grow(3 * mebibyte);
    const other = budget.room('a');
    expect(() => other.grow(2 * mebibyte)).toThrow('4194304 bytes of requests at once');
    other.grow(mebibyte);
    room.leave();
    room.leave();
    other.grow(3 * mebibyte);
    expect(() => other.grow(1)).toThrow('limit');
  });

  it('keeps a quarter of the room for ordinary bodies', () => {
    const budget = new BodyBudget(8 * mebibyte);
    budget.room('a').grow(4 * mebibyte);
    const large = budget.room('b');
    large.grow(2 * mebibyte);
    expect(() => budget.room('c').grow(largeBodyBytes + 1)).toThrow('All places are taken');
    for (const key of ['c', 'd']) budget.room(key).grow(mebibyte);
    expect(() => budget.room('e').grow(1)).toThrow('All places are taken');
  });
});
