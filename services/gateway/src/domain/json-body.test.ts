import { expect, it } from 'vitest';
import { parseJson } from './json-body.js';

const parsed = (text: string) => parseJson(Buffer.from(text));

it('half of a character is refused, and nothing that only looks like it', () => {
  expect(() => parsed(String.raw`{"a": "x \ud83d y"}`)).toThrow('half of a character');
  expect(() => parsed(String.raw`["\\\udc00"]`)).toThrow('half of a character');
  expect(parsed(String.raw`["\ud83d\ude00"]`)).toEqual(['\u{1F600}']);
  expect(parsed(String.raw`["\\ud83d", "\\\\ude00"]`)).toEqual([String.raw`\ud83d`, String.raw`\\ude00`]);
});
