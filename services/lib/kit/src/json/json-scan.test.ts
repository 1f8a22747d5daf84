import { describe, expect, it } from 'vitest';
import { jsonExcess, JsonScan } from './json-scan.js';

const bounds = { bytesMax: 1_000_000, membersMax: 10, depthMax: 4 };
const excess = (text: string) => jsonExcess(Buffer.from(text), bounds);

describe('JsonScan', () => {
  it.each([
    ['bytes', 'x'.repeat(1_000_001)],
    ['members', `[${'{},'.repeat(5)}1]`],
    ['members', `[${'1,'.repeat(10)}1]`],
    ['depth', '[[[[[]]]]]'],
    [undefined, '[[[[]]],[[[]]]]'],
    [undefined, `[${'1,'.repeat(9)}1]`],
  ])('names the bound that is broken: %s', (bound, text) => {
    expect(excess(text)).toBe(bound);
  });

  it('counts nothing inside of strings, however they end', () => {
    for (const inside of ['{[,'.repeat(50), '\\"{{{{{{', `${'\\\\'.repeat(60)}\\"[[[[[[`, `${'é'.repeat(99)}\\\\`])
      expect(excess(`["${inside}","{"]`)).toBeUndefined();
    expect(excess(`["${'\\\\'.repeat(60)}",[[[[]]]]]`)).toBe('depth');
    expect(excess(`["${'x'.repeat(200)}\\\\",[[[[]]]]]`)).toBe('depth');
  });

  it('says the same of JSON that comes in pieces, wherever these are cut', () => {
    const texts = [
      `{"a":"${'\\\\'.repeat(30)}\\"${'y'.repeat(100)}\\\\\\"[[[[[","b":[[[1]]]}`,
      `{"a":"${'z'.repeat(70)}\\\\","b":[[[[1]]]]}`,
    ];
    for (const text of texts) {
      const json = Buffer.from(text);
      for (let length = 1; length < json.length; length += 1) {
        const scan = new JsonScan(bounds);
        for (let at = 0; at < json.length; at += length) scan.add(json.subarray(at, at + length));
        expect(scan.add(Buffer.alloc(0))).toBe(excess(text));
      }
    }
    expect(texts.map(excess)).toEqual([undefined, 'depth']);
  });

  it('agrees with a parser on what values hold', () => {
    const count = (value: unknown): number => {
      if (typeof value !== 'object' || value === null) return 0;
      const held: unknown[] = Array.isArray(value) ? value : Object.values(value);
      return 1 + Math.max(0, held.length - 1) + held.reduce<number>((sum, child) => sum + count(child), 0);
    };
    const value = { 'a,b': ['{', '[', '\\', '"', '\\"'], c: [{ d: [] }, { e: { f: ',,,' } }], '"': 1, '\\': [1, 2] };
    const members = count(value);
    const json = Buffer.from(JSON.stringify(value, null, 2));
    expect(jsonExcess(json, { ...bounds, membersMax: members })).toBeUndefined();
    expect(jsonExcess(json, { ...bounds, membersMax: members - 1 })).toBe('members');
  });
});
