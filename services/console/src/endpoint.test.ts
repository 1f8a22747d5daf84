import { describe, expect, it } from 'vitest';
import { Frames } from './endpoint.js';

const frame = (content: string) => `data: ${JSON.stringify({ choices: [{ delta: { content } }] })}\n\n`;

describe('Frames', () => {
  it('gives the words of a stream, wherever its chunks are cut', () => {
    const stream = `${frame('The sky ')}: a comment\n\n${frame('is “blue”.')}data: {"choices":[]}\n\ndata: [DONE]\n\n`;
    for (let cut = 1; cut < stream.length; cut += 1) {
      const frames = new Frames();
      expect(frames.add(stream.slice(0, cut)) + frames.add(stream.slice(cut))).toBe('The sky is “blue”.');
    }
  });

  it('throws the words of an error that ends a stream', () => {
    const frames = new Frames();
    expect(() => frames.add('data: {"error":{"message":"The engine is gone."}}\n\n')).toThrow('The engine is gone.');
  });
});
