// The page in a window without a screen, and an endpoint that answers it as a test wants.
import { readFile } from 'node:fs/promises';
import { Window } from 'happy-dom';
import { vi } from 'vitest';

export interface Asked {
  readonly method: string;
  readonly path: string;
  readonly headers: Headers;
  readonly body: unknown;
}

type Reply = (asked: Asked, signal: AbortSignal) => Response | Promise<Response>;

export interface OpenPage {
  readonly window: Window;
  /** All requests, in order. */
  readonly asked: Asked[];
  /** The most requests that were open at once, but for answers. */
  readonly mostAtOnce: () => number;
  /** By method and path; it replaces what was told before. */
  readonly reply: (route: string, reply: Reply) => void;
  readonly part: (id: string) => HTMLElement;
  readonly field: (id: string) => HTMLInputElement;
  readonly submit: (form: string, field: string, words: string) => void;
  readonly count: (route: string) => number;
}

const globals = ['document', 'sessionStorage', 'HTMLElement', 'HTMLFormElement', 'HTMLInputElement'] as const;
const moreGlobals = ['HTMLTextAreaElement', 'HTMLButtonElement'] as const;

export async function openPage(): Promise<OpenPage> {
  const window = new Window({ url: 'http://127.0.0.1:30000/' });
  const page = await readFile(new URL('../../page/index.html', import.meta.url), 'utf8');
  window.document.write(page.replace(/<(?:script|link)[^>]*>/g, ''));
  for (const name of [...globals, ...moreGlobals]) vi.stubGlobal(name, window[name]);
  const asked: Asked[] = [];
  const replies = new Map<string, Reply>([
    ['GET /v1/models', () => Response.json({ data: [{ id: 'backtalk' }] })],
    ['GET /v1/lessons', () => Response.json({ data: [] })],
    ['GET /v1/versions?limit=8', () => Response.json({ data: [] })],
    ['POST /v1/lessons', () => Response.json({})],
    ['POST /v1/feedback', () => Response.json({})],
  ]);
  let open = 0;
  let most = 0;
  vi.stubGlobal('fetch', async (path: string, init: { method: string; headers: Headers; body?: string }) => {
    const { method, headers, body } = init;
    const one = { method, path, headers, body: body === undefined ? undefined : (JSON.parse(body) as unknown) };
    asked.push(one);
    const { signal } = init as unknown as { readonly signal: AbortSignal };
    const reply = replies.get(`${method} ${path}`);
    if (reply === undefined) throw new TypeError(`The test's endpoint knows no ${method} ${path}.`);
    const isAnswer = path === '/v1/chat/completions';
    if (!isAnswer) most = Math.max(most, ++open);
    try {
      return await reply(one, signal);
    } finally {
      if (!isAnswer) open -= 1;
    }
  });
  const part = (id: string) => window.document.getElementById(id) as unknown as HTMLElement;
  const field = (id: string) => part(id) as HTMLInputElement;
  vi.resetModules();
  await import('../main.js');
  return {
    window,
    asked,
    mostAtOnce: () => most,
    reply: (route, reply) => replies.set(route, reply),
    part,
    field,
    submit: (form, name, words) => {
      field(name).value = words;
      (part(form) as HTMLFormElement).requestSubmit();
    },
    count: (route) => asked.filter(({ method, path }) => `${method} ${path}` === route).length,
  };
}

const frame = (content: string) =>
  new TextEncoder().encode(`data: ${JSON.stringify({ choices: [{ delta: { content } }] })}\n\n`);

/** A stream that a test writes, and that ends as a browser's does where its request is aborted. */
export function stream(signal: AbortSignal, headers: Record<string, string> = {}) {
  let give: ReadableStreamDefaultController<Uint8Array> | undefined;
  const body = new ReadableStream<Uint8Array>({
    start: (controller) => {
      give = controller;
      signal.addEventListener('abort', () => {
        controller.error(signal.reason);
      });
    },
  });
  return {
    response: new Response(body, {
      headers: { 'X-Backtalk-Turn': 'turn_1', 'X-Backtalk-Weights': 'backtalk-v1', ...headers },
    }),
    write: (words: string) => give?.enqueue(frame(words)),
    end: () => give?.close(),
  };
}
