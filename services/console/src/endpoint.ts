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
  /** Whether it was stopped before its end. */
  readonly stopped: boolean;
  /** Whose share of the day's log is full, so that it was not recorded; else empty. */
  readonly fullShare: string;
  /** Whether it may be learned from. */
  readonly trains: boolean;
}

export interface Wishes {
  /** Learn from it; left out, what was said before in the conversation holds. */
  readonly train?: 'on' | 'off';
  /** Show the model what it has not learned yet; left out, what the endpoint is set to holds. */
  readonly remind?: 'on' | 'off';
}

/** The endpoint wants a key, or another one. */
export class KeyWanted extends TypeError {}

/** The key has asked as often as it may for now. */
export class TooOften extends TypeError {}

const keyName = 'backtalk-key';
const askedMs = 15_000;
const answeredMs = 600_000;

/** Found with the key of now: the first policy that it opens. */
let model: string | undefined;

export function useKey(key: string): void {
  model = undefined;
  sessionStorage.setItem(keyName, key);
}

interface More {
  readonly headers?: HeadersInit;
  readonly withinMs?: number;
  readonly signal?: AbortSignal;
}

async function ask(method: string, path: string, body?: unknown, more: More = {}): Promise<Response> {
  const headers = new Headers(more.headers);
  const key = sessionStorage.getItem(keyName);
  if (key !== null && !isKey(key)) {
    sessionStorage.removeItem(keyName);
    throw new KeyWanted('A key has letters, digits and signs of ASCII alone, and no space.');
  }
  if (key !== null) headers.set('Authorization', `Bearer ${key}`);
  if (body !== undefined) headers.set('Content-Type', 'application/json');
  const deadline = AbortSignal.timeout(more.withinMs ?? askedMs);
  const response = await fetch(path, {
    method,
    headers,
    signal: more.signal === undefined ? deadline : AbortSignal.any([deadline, more.signal]),
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  });
  if (response.ok) return response;
  const { code, message = `The endpoint answered ${String(response.status)}.` } = await errorIn(response);
  // Another may be open to this key by now.
  if (response.status === 401 || response.status === 404) model = undefined;
  if (response.status === 401) throw new KeyWanted(message);
  if (code === 'context_length_exceeded')
    throw new TypeError('This conversation is as long as the model can read. Start a new one to go on.');
  throw response.status === 429 ? new TooOften(message) : new TypeError(message);
}

/** As a header can hold it. */
const isKey = (text: string) => /^[\x21-\x7e]+$/.test(text);

interface ErrorWords {
  readonly code?: string;
  readonly message?: string;
}

async function errorIn(response: Response): Promise<ErrorWords> {
  const body = (await response.json().catch(() => ({}))) as { readonly error?: ErrorWords };
  return body.error ?? {};
}

/** Requests of the page but for answers, one after the other: a key may have one at a time. */
let last: Promise<unknown> = Promise.resolve();

function inTurn<T>(work: () => Promise<T>): Promise<T> {
  const mine = last.then(work);
  last = mine.catch(() => undefined);
  return mine;
}

/** The first policy that this key opens. */
async function modelName(): Promise<string> {
  if (model !== undefined) return model;
  const response = await ask('GET', '/v1/models');
  const { data } = (await response.json()) as { readonly data: readonly { readonly id: string }[] };
  model = data[0]?.id;
  if (model === undefined) throw new TypeError('No model is open to this key.');
  return model;
}

async function listAt<T>(path: string): Promise<T[]> {
  const response = await ask('GET', path);
  return ((await response.json()) as { readonly data: T[] }).data;
}

export const lessons = (): Promise<Lesson[]> => inTurn(() => listAt<Lesson>('/v1/lessons'));

/** The newest of each model that this key opens, and the one that answers. */
export const versions = (): Promise<Version[]> => inTurn(() => listAt<Version>('/v1/versions?limit=8'));

/**
 * For the model that the page talks to: a key may open several.
 * @param id of this submission: the same one, sent twice, makes one lesson
 */
export async function teach(text: string, id: string): Promise<void> {
  const headers = { 'Idempotency-Key': id };
  await inTurn(async () => ask('POST', '/v1/lessons', { text, policy: await modelName() }, { headers }));
}

export async function endLesson(id: string): Promise<void> {
  await inTurn(() => ask('DELETE', `/v1/lessons/${encodeURIComponent(id)}`));
}

export async function feedback(turn: string, score: -1 | 1, wishes: Pick<Wishes, 'train'>): Promise<void> {
  await inTurn(() => ask('POST', '/v1/feedback', { turn_id: turn, score }, { headers: headersOf(wishes) }));
}

function headersOf({ train, remind }: Wishes): Record<string, string> {
  return {
    ...(train === undefined ? {} : { 'X-Backtalk-Train': train }),
    ...(remind === undefined ? {} : { 'X-Backtalk-Lessons': remind }),
  };
}

/**
 * @param hear is given the words as they come
 * @param signal stops it; what was heard by then stands, if it had begun
 */
export async function answer(
  messages: readonly Message[],
  wishes: Wishes,
  hear: (words: string) => void,
  signal: AbortSignal,
): Promise<Answer> {
  const name = await inTurn(modelName);
  const body = { model: name, messages, stream: true };
  const headers = headersOf(wishes);
  const response = await ask('POST', '/v1/chat/completions', body, { headers, withinMs: answeredMs, signal });
  await readWords(response, hear).catch((thrown: unknown) => {
    if (!signal.aborted) throw thrown;
  });
  const told = (header: string) => response.headers.get(header) ?? '';
  return {
    turn: told('X-Backtalk-Turn'),
    weights: told('X-Backtalk-Weights'),
    shown: Number(told('X-Backtalk-Lessons')),
    stopped: signal.aborted,
    fullShare: /^off; full=(\w+)/.exec(told('X-Backtalk-Capture'))?.[1] ?? '',
    trains: told('X-Backtalk-Train') !== 'off',
  };
}

async function readWords(response: Response, hear: (words: string) => void): Promise<void> {
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
