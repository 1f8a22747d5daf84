import { describe, expect, it } from 'vitest';
import { SseData } from './sse-data.js';

function read(chunks: Buffer[]): string[] {
  const lines = new SseData();
  const data: string[] = [];
  for (const chunk of chunks) lines.feed(chunk, (line) => data.push(line));
  return data;
}

const stream = Buffer.from('data: {"a":"🎉 é"}\r\n\r\n: comment\nevent: x\ndata:{"b":2}\n\ndata: [DONE]\n\n');
const expected = ['{"a":"🎉 é"}', '{"b":2}', '[DONE]'];

describe('SseData', () => {
  it('gives every data line once, however the bytes are cut', () => {
    for (const size of [1, 2, 3, 5, 7, 11, stream.length]) {
      const chunks = [];
      for (let at = 0; at < stream.length; at += size) chunks.push(stream.subarray(at, at + size));
      expect(read(chunks)).toEqual(expected);
    }
  });

  it('holds back a line that is not yet whole', () => {
    expect(read([Buffer.from('data: {"a"')])).toEqual([]);
  });

  it('refuses a line without end', () => {
    const lines = new SseData();
    const chunk = Buffer.alloc(1024 * 1024, 'x');
    const fed = Array.from({ length: 17 }, () => lines.feed(chunk, () => undefined));
    expect(fed.at(-1)).toBe(false);
    expect(fed[0]).toBe(true);
  });
});
