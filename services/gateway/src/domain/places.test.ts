import { describe, expect, it } from 'vitest';
import { Places } from './places.js';

describe('Places', () => {
  it('refuses what is beyond the bound of all, of a key, or of the key’s own limit', () => {
    const places = new Places({ requestsMax: 3, keyRequestsMax: 2 });
    const leave = places.enter('a', undefined);
    places.enter('a', undefined);
    expect(() => places.enter('a', undefined)).toThrow('2 requests at once');
    expect(() => places.enter('b', 0)).toThrow('0 requests at once');
    places.enter('b', undefined);
    expect(() => places.enter('c', undefined)).toThrow('All places are taken');
    leave();
    places.enter('a', undefined);
    expect(places.total).toBe(3);
  });

  it('counts answers by engine and version, tells every change, and counts an end once', () => {
    const places = new Places({ requestsMax: 3, keyRequestsMax: 3 });
    const seen: Record<string, number>[] = [];
    const stop = places.onChange(() => seen.push(places.byVersion()));
    const leave = places.answer('http://a', 'p-v1');
    places.answer('http://a', 'p-v2');
    expect(places.onEngine('http://a')).toBe(2);
    leave();
    leave();
    stop();
    places.answer('http://b', 'p-v1');
    expect(seen).toEqual([{ 'p-v1': 1 }, { 'p-v1': 1, 'p-v2': 1 }, { 'p-v2': 1 }]);
    expect(places.onEngine('http://a')).toBe(1);
  });
});
