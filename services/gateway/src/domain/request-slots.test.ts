import { describe, expect, it } from 'vitest';
import { keylessId } from './caller.js';
import { RequestSlots } from './request-slots.js';

describe('RequestSlots', () => {
  it('refuses what is beyond the bound of all, of a key, or of the key’s own limit', () => {
    const slots = new RequestSlots({ requestsMax: 3, keyRequestsMax: 2 });
    const leave = slots.enter('a', undefined, 'a');
    slots.enter('a', undefined, 'a');
    expect(() => slots.enter('a', undefined, 'a')).toThrow('2 requests at once');
    expect(() => slots.enter('b', 0, 'b')).toThrow('0 requests at once');
    slots.enter('b', undefined, 'b');
    expect(() => slots.enter('c', undefined, 'c')).toThrow('All places are taken');
    leave();
    slots.enter('a', undefined, 'a');
  });

  it('leaves a quarter of all places to other tenants than the one of many keys', () => {
    const slots = new RequestSlots({ requestsMax: 8, keyRequestsMax: 4 });
    const ends = ['a', 'a', 'a', 'b', 'b', 'b'].map((key) => slots.enter(key, undefined, 'acme'));
    for (const key of ['a', 'c']) expect(() => slots.enter(key, undefined, 'acme')).toThrow('6 requests at once with');
    slots.enter('d', undefined, 'other');
    ends[0]?.();
    slots.enter('c', undefined, 'acme');
  });

  it('gives the one key of a keyless gateway all places that a key may have', () => {
    const slots = new RequestSlots({ requestsMax: 8, keyRequestsMax: 8 });
    for (let entered = 0; entered < 8; entered += 1) slots.enter(keylessId, undefined, 'default');
    expect(() => slots.enter(keylessId, undefined, 'default')).toThrow('All places are taken');
  });

  it('counts answers by engine and version, tells every change, and counts an end once', () => {
    const slots = new RequestSlots({ requestsMax: 3, keyRequestsMax: 3 });
    const seen: Record<string, number>[] = [];
    const stop = slots.onChange(() => seen.push(slots.byVersion()));
    const leave = slots.answer('a', 'http://a', 'p-v1');
    slots.answer('a', 'http://a', 'p-v2');
    expect(slots.onEngine('http://a')).toBe(2);
    leave();
    leave();
    stop();
    slots.answer('a', 'http://b', 'p-v1');
    expect(seen).toEqual([{ 'p-v1': 1 }, { 'p-v1': 1, 'p-v2': 1 }, { 'p-v2': 1 }]);
    expect(slots.onEngine('http://a')).toBe(1);
  });

  it('leaves a quarter of each engine to other keys', () => {
    const slots = new RequestSlots({ requestsMax: 9, keyRequestsMax: 9 });
    const ends = [1, 2, 3].map(() => slots.answer('a', 'http://a', 'p-v1'));
    expect(slots.hasShare('a', 'http://a', 4)).toBe(true);
    expect(slots.hasShare('b', 'http://a', 4)).toBe(false);
    expect(slots.hasShare('a', 'http://b', 4)).toBe(false);
    ends[0]?.();
    expect(slots.hasShare('a', 'http://a', 4)).toBe(false);
  });

  it('takes an engine for one of 256 places, however many requests it may be sent', () => {
    const slots = new RequestSlots({ requestsMax: 999, keyRequestsMax: 999 });
    for (let answers = 0; answers < 191; answers += 1) slots.answer('a', 'http://a', 'p-v1');
    expect(slots.hasShare('a', 'http://a', 1_024)).toBe(false);
    slots.answer('a', 'http://a', 'p-v1');
    expect(slots.hasShare('a', 'http://a', 1_024)).toBe(true);
  });
});
