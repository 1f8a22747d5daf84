// One request to the gateway as a plain HTTP client makes it, streamed or whole.
// In: messages. Out: what arrived, whether or not all went well: a request that fails is an outcome here, not an exception.

import { hashOf, type LedgerRow } from './ledger.js';

export interface Message {
  readonly role: 'system' | 'user' | 'assistant';
  readonly content: string;
}

export interface Question {
  readonly messages: readonly Message[];
  readonly model?: string;
  readonly stream?: boolean;
  readonly maxTokens?: number;
  readonly seed?: number;
  readonly headers?: Readonly<Record<string, string>>;
  readonly signal?: AbortSignal;
  /** Called with each piece of the answer's text as it arrives. */
  readonly onText?: (text: string) => void;
}

export interface Heard {
  readonly turn: string;
  readonly weights: string;
  readonly session: string;
  readonly status: number;
  readonly text: string;
  readonly finished: boolean;
  readonly finishReason: string;
  readonly error: string;
  /** The last line of a stream was `[DONE]`. */
  readonly done: boolean;
}

interface Wire {
  readonly choices?: readonly {
    readonly delta?: { readonly content?: string | null };
    readonly message?: { readonly content?: string | null };
    readonly finish_reason?: string | null;
  }[];
  readonly error?: { readonly code?: string };
}

/** No answer takes so long: a client that waited longer would never know. */
const answerMs = 180_000;

export async function ask(gateway: string, question: Question): Promise<Heard> {
  const hearing = new Hearing(question.onText);
  const deadline = AbortSignal.timeout(answerMs);
  const signal = question.signal === undefined ? deadline : AbortSignal.any([question.signal, deadline]);
  try {
    const response = await fetch(`${gateway}/v1/chat/completions`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', ...question.headers },
      body: bodyOf(question),
      signal,
    });
    hearing.head(response);
    if (question.stream === false || response.status !== 200) hearing.whole(await response.text());
    else await hearStream(response, hearing, signal);
  } catch {
    // The connection broke, or the caller gave up: what arrived until then stands.
  }
  return hearing.heard();
}

/** Stops by itself when the caller gives up in the very moment in which the last bytes arrive: then no read would end. */
async function hearStream(response: Response, hearing: Hearing, signal: AbortSignal): Promise<void> {
  const pieces: AsyncIterable<Uint8Array> | undefined = response.body ?? undefined;
  if (pieces === undefined) return;
  for await (const chunk of pieces) {
    hearing.chunk(chunk);
    if (signal.aborted) return;
  }
}

function bodyOf({ messages, model = 'backtalk', stream = true, maxTokens, seed }: Question): string {
  return JSON.stringify({ model, messages, stream, max_tokens: maxTokens, seed });
}

/** Collects what arrives. */
class Hearing {
  private status = 0;
  private turn = '';
  private weights = '';
  private session = '';
  private text = '';
  private finishReason = '';
  private error = '';
  private done = false;
  private readonly decoder = new TextDecoder();
  private rest = '';

  constructor(private readonly onText: (text: string) => void = () => undefined) {}

  head({ status, headers }: Response): void {
    this.status = status;
    this.turn = headers.get('x-backtalk-turn') ?? '';
    this.weights = headers.get('x-backtalk-weights') ?? '';
    this.session = headers.get('x-backtalk-session') ?? '';
  }

  whole(body: string): void {
    this.take(body);
  }

  chunk(bytes: Uint8Array): void {
    const lines = (this.rest + this.decoder.decode(bytes, { stream: true })).split('\n');
    this.rest = lines.pop() ?? '';
    for (const line of lines) {
      if (!line.startsWith('data: ')) continue;
      if (line === 'data: [DONE]') this.done = true;
      else this.take(line.slice('data: '.length));
    }
  }

  heard(): Heard {
    const { turn, weights, session, status, text, finishReason, error, done } = this;
    return { turn, weights, session, status, text, finishReason, finished: finishReason !== '', error, done };
  }

  private take(json: string): void {
    const { choices = [], error } = JSON.parse(json) as Wire;
    if (error !== undefined) this.error = error.code ?? 'unknown';
    const [choice] = choices;
    const piece = choice?.delta?.content ?? choice?.message?.content ?? '';
    this.text += piece;
    if (piece !== '') this.onText(piece);
    this.finishReason = choice?.finish_reason ?? this.finishReason;
  }
}

export function rowOf(client: string, heard: Heard, { continues = '', optedOut = false } = {}): LedgerRow {
  const { turn, weights, status, text, finished, error } = heard;
  return {
    ...{ client, turn, weights, status, finished, error, continues, optedOut },
    ...{ bytes: Buffer.byteLength(text, 'utf8'), hash: hashOf(text) },
  };
}
