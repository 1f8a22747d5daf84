// The endpoint that serves this page, as its own API. In: what to ask. Out: its answer, or an error with its words.
import type { Lesson } from './lessons.js';
import type { Version } from './versions.js';

export interface Message {
  readonly role: 'user' | 'assistant';
  readonly content: string;
}

export interface Answer {
  readonly turn: string;
  readonly weights: string;
  /** Lessons that the model was shown. */
  readonly shown: number;
}

export interface Wishes {
  /** Learn from it; left out, what was said before in the conversation holds. */
  readonly train?: 'on' | 'off';
  /** Show the model what it has not learned yet. */
  readonly remind: boolean;
}

/** The endpoint wants a key, or another one. */
export class KeyWanted extends TypeError {}

/** The key has asked as often as it may for now. */
export class TooOften extends TypeError {}

const keyName = 'backtalk-key';
const askedMs = 15_000;
const answeredMs = 600_000;

export function useKey(key: string): void {
  sessionStorage.setItem(keyName, key);
}

async function ask(method: string, path: string, body?: unknown, more: HeadersInit = {}, withinMs = askedMs) {
  const headers = new Headers(more);
  const key = sessionStorage.getItem(keyName);
  if (key !== null && !isKey(key)) {
    sessionStorage.removeItem(keyName);
    throw new KeyWanted('A key has letters, digits and signs of ASCII alone, and no space.');
  }
  if (key !== null) headers.set('Authorization', `Bearer ${key}`);
  if (body !== undefined) headers.set('Content-Type', 'application/json');
  const response = await fetch(path, {
    method,
    headers,
    signal: AbortSignal.timeout(withinMs),
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  });
  if (response.ok) return response;
  const words = await errorIn(response);
  if (response.status === 401) throw new KeyWanted(words);
  throw response.status === 429 ? new TooOften(words) : new TypeError(words);
}

/** As a header can hold it. */
const isKey = (text: string) => /^[\x21-\x7e]+$/.test(text);

async function errorIn(response: Response): Promise<string> {
  const body = (await response.json().catch(() => ({}))) as { readonly error?: { readonly message?: string } };
  return body.error?.message ?? `The endpoint answered ${String(response.status)}.`;
}

/** The first policy that this key opens. */
export async function modelName(): Promise<string> {
  const response = await ask('GET', '/v1/models');
  const { data } = (await response.json()) as { readonly data: readonly { readonly id: string }[] };
  const [first] = data;
  if (first === undefined) throw new TypeError('No model is open to this key.');
  return first.id;
}

export async function lessons(): Promise<Lesson[]> {
  const response = await ask('GET', '/v1/lessons');
  const { data } = (await response.json()) as { readonly data: Lesson[] };
  return data;
}

/** The newest of each model that this key opens. */
export async function versions(): Promise<Version[]> {
  const response = await ask('GET', '/v1/versions?limit=8');
  const { data } = (await response.json()) as { readonly data: Version[] };
  return data;
}

/** For the model that the page talks to: a key may open several. */
export async function teach(text: string): Promise<void> {
  await ask('POST', '/v1/lessons', { text, policy: await modelName() });
}

export async function endLesson(id: string): Promise<void> {
  await ask('DELETE', `/v1/lessons/${encodeURIComponent(id)}`);
}

export async function feedback(turn: string, score: -1 | 1, { train }: Pick<Wishes, 'train'>): Promise<void> {
  await ask('POST', '/v1/feedback', { turn_id: turn, score }, consent(train));
}

function consent(train: Wishes['train']): Record<string, string> {
  return train === undefined ? {} : { 'X-Backtalk-Train': train };
}

/** @param hear is given the words as they come */
export async function answer(
  model: string,
  messages: readonly Message[],
  { train, remind }: Wishes,
  hear: (words: string) => void,
): Promise<Answer> {
  const more = { 'X-Backtalk-Lessons': remind ? 'on' : 'off', ...consent(train) };
  const response = await ask('POST', '/v1/chat/completions', { model, messages, stream: true }, more, answeredMs);
  const frames = new Frames();
  // Not every browser goes through a stream by itself.
  const reader = response.body?.pipeThrough(new TextDecoderStream()).getReader();
  try {
    for (let part = await reader?.read(); part?.done === false; part = await reader?.read())
      hear(frames.add(part.value));
  } finally {
    // Of an answer that broke off, nothing more is wanted.
    await reader?.cancel();
  }
  return {
    turn: response.headers.get('X-Backtalk-Turn') ?? '',
    weights: response.headers.get('X-Backtalk-Weights') ?? '',
    shown: Number(response.headers.get('X-Backtalk-Lessons') ?? 0),
  };
}

/** Reads server-sent events of OpenAI's chat stream. */
export class Frames {
  private rest = '';

  /** @returns words of the frames that are whole by now */
  add(chunk: string): string {
    const parts = (this.rest + chunk).split('\n');
    this.rest = parts.pop() ?? '';
    return parts.map((line) => wordsIn(line.trim())).join('');
  }
}

function wordsIn(line: string): string {
  if (!line.startsWith('data:') || line.endsWith('[DONE]')) return '';
  const frame = JSON.parse(line.slice('data:'.length)) as {
    readonly choices?: readonly { readonly delta?: { readonly content?: string | null } }[];
    readonly error?: { readonly message?: string };
  };
  if (frame.error !== undefined) throw new TypeError(frame.error.message ?? 'The answer was cut off.');
  return frame.choices?.[0]?.delta?.content ?? '';
}
