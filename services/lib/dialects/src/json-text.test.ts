import { describe, expect, it } from 'vitest';
import { jsonPieces, JsonText, slicesOf } from './json-text.js';

const written = (value: unknown) => new JsonText(Buffer.from(JSON.stringify(value)));
const joined = (object: Record<string, unknown>) => Buffer.concat(jsonPieces(object)).toString();

describe('jsonPieces', () => {
  it.each([
    [
      { model: 'm', stream: true },
      { model: 'm', stream: true },
    ],
    [
      { model: 'm', messages: written(['é']), tools: written([{}]) },
      { model: 'm', messages: ['é'], tools: [{}] },
    ],
    [
      { messages: written([1]), 'a "b"': written({}) },
      { messages: [1], 'a "b"': {} },
    ],
    [{}, {}],
    [
      { model: 'm', absent: undefined, messages: written([]) },
      { model: 'm', messages: [] },
    ],
  ])('an object is JSON whichever of its fields are written already: %j', (object, value) => {
    expect(JSON.parse(joined(object))).toEqual(value);
  });

  it('what is written already is neither read nor copied', () => {
    const messages = written(['hello']);
    expect(jsonPieces({ model: 'm', messages })).toContain(messages.bytes);
  });
});

describe('slicesOf', () => {
  it('what is large comes in slices of at most 1 MiB, whole and in order', () => {
    const pieces = [Buffer.from('{'), Buffer.alloc(2_500 * 1024, 'ab'), Buffer.from('}')];
    const slices = [...slicesOf(pieces)];
    expect(Math.max(...slices.map(({ byteLength }) => byteLength))).toBe(1024 * 1024);
    expect(Buffer.concat(slices).equals(Buffer.concat(pieces))).toBe(true);
  });
});
