import { describe, expect, it } from 'vitest';
import { BodyBudget, largeBodyBytes } from './body-budget.js';
import { keylessId } from './caller.js';

const mebibyte = 1024 * 1024;

describe('BodyBudget', () => {
  it('gives one key half of the room, and gives it again once its requests are answered', () => {
    const budget = new BodyBudget(8 * mebibyte);
    const room = budget.room('a', 'a');
    room.grow(3 * mebibyte);
    const other = budget.room('a', 'a');
    expect(() => other.grow(2 * mebibyte)).toThrow('4194304 bytes of requests and answers at once');
    other.grow(mebibyte);
    room.leave();
    room.leave();
    other.grow(3 * mebibyte);
    expect(() => other.grow(1)).toThrow('limit');
  });

  it('gives back what is kept no longer, and counts nothing of a body that is done with', () => {
    const budget = new BodyBudget(8 * mebibyte);
    const [stream, other] = [budget.room('a', 'a'), budget.room('a', 'a')];
    stream.grow(4 * mebibyte);
    expect(other.mayGrow(1)).toBe(false);
    stream.shrink(mebibyte);
    expect(other.mayGrow(mebibyte)).toBe(true);
    stream.leave();
    stream.grow(mebibyte);
    expect([other.mayGrow(3 * mebibyte), other.mayGrow(1)]).toEqual([true, false]);
  });

  it('leaves a quarter of the room, for bodies of each kind, to other tenants than the one of many keys', () => {
    const budget = new BodyBudget(8 * mebibyte);
    for (const key of ['a', 'b']) budget.room(key, 'acme').grow(2 * mebibyte);
    expect(() => budget.room('c', 'acme').grow(mebibyte + 1)).toThrow('with its tenant');
    const rooms = ['c', 'd'].map((key) => budget.room(key, 'acme'));
    for (const room of rooms) room.grow(mebibyte);
    expect(() => budget.room('e', 'acme').grow(1)).toThrow('6291456 bytes of requests and answers at once with');
    budget.room('f', 'other').grow(mebibyte);
    rooms[0]?.leave();
    budget.room('e', 'acme').grow(1);
  });

  it('gives the one key of a keyless gateway no tenant’s bound', () => {
    const budget = new BodyBudget(8 * mebibyte);
    budget.room('a', 'default').grow(4 * mebibyte);
    for (const _body of [1, 2, 3]) budget.room(keylessId, 'default').grow(mebibyte);
  });

  it('keeps a quarter of the room for ordinary bodies', () => {
    const budget = new BodyBudget(8 * mebibyte);
    budget.room('a', 'a').grow(4 * mebibyte);
    const large = budget.room('b', 'b');
    large.grow(2 * mebibyte);
    expect(() => budget.room('c', 'c').grow(largeBodyBytes + 1)).toThrow('All places are taken');
    for (const key of ['c', 'd']) budget.room(key, key).grow(mebibyte);
    expect(() => budget.room('e', 'e').grow(1)).toThrow('All places are taken');
  });
});
