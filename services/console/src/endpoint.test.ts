import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { answer, feedback, Frames, KeyWanted, lessons, teach } from './endpoint.js';

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

describe('what the endpoint is asked', () => {
  const asked: { readonly path: string; readonly headers: Headers; readonly body: unknown }[] = [];

  beforeEach(() => {
    asked.length = 0;
    vi.stubGlobal('sessionStorage', { getItem: () => null });
    vi.stubGlobal('fetch', (path: string, { headers, body }: { headers: Headers; body?: string }) => {
      asked.push({ path, headers, body: body === undefined ? undefined : JSON.parse(body) });
      if (path === '/v1/models') return Promise.resolve(Response.json({ data: [{ id: 'ada' }, { id: 'ben' }] }));
      const frames = new Response(`${frame('Blue.')}data: [DONE]\n\n`);
      return Promise.resolve(path === '/v1/lessons' ? Response.json({}) : frames);
    });
  });
  afterEach(() => {
    vi.unstubAllGlobals();
  });

  it('a lesson is for the model that the page talks to, where a key opens several', async () => {
    await teach('Be brief.', 'once');
    expect(asked.at(-1)?.headers.get('Idempotency-Key')).toBe('once');
    expect(asked.at(-1)?.body).toEqual({ text: 'Be brief.', policy: 'ada' });
  });

  it('an answer and a thumb carry what was said of learning, and nothing where nothing was', async () => {
    const heard: string[] = [];
    await answer([], { train: 'off' }, (words) => heard.push(words), new AbortController().signal);
    await feedback('t', 1, { train: 'on' });
    await feedback('t', 1, {});
    expect(heard.join('')).toBe('Blue.');
    const said = asked
      .filter(({ path }) => path !== '/v1/models')
      .map(({ headers }) => headers.get('X-Backtalk-Train'));
    expect(said).toEqual(['off', 'on', null]);
  });

  it('a key that no header can hold is asked for anew, and forgotten', async () => {
    const forgotten: string[] = [];
    const removeItem = (name: string) => forgotten.push(name);
    vi.stubGlobal('sessionStorage', { getItem: () => 'sk-schlüssel', removeItem });
    await expect(lessons()).rejects.toThrow(KeyWanted);
    expect([forgotten.length, asked.length]).toEqual([1, 0]);
  });

  it('an answer is read where streams cannot be gone through by themselves', async () => {
    const iterate = Reflect.get(ReadableStream.prototype, Symbol.asyncIterator) as unknown;
    Reflect.deleteProperty(ReadableStream.prototype, Symbol.asyncIterator);
    const heard: string[] = [];
    const { signal } = new AbortController();
    await answer([], {}, (words) => heard.push(words), signal).finally(() => {
      Reflect.set(ReadableStream.prototype, Symbol.asyncIterator, iterate);
    });
    expect(heard.join('')).toBe('Blue.');
  });
});
