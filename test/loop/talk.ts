// One request to the gateway as a plain HTTP client makes it, streamed or whole.
// In: messages. Out: what arrived, whether or not all went well: a request that fails is an outcome here, not an exception.
import { Agent, request, type IncomingMessage } from 'node:http';
import { hashOf, type LedgerRow } from './ledger.js';

export interface Message {
  readonly role: 'system' | 'user' | 'assistant' | 'tool';
  readonly content: string | null;
  /** Thoughts, calls and results, as agents send them back. */
  readonly reasoning_content?: string;
  readonly tool_calls?: readonly object[];
  readonly tool_call_id?: string;
}

export interface Question {
  readonly messages: readonly Message[];
  readonly tools?: readonly object[];
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

/** Idle connections are kept, as clients keep them, and hold no process open. */
const agent = new Agent({ keepAlive: true });

/** Resolves when the answer is over, however it ends: a connection that breaks and a caller that gives up end it, too. */
export function ask(gateway: string, question: Question): Promise<Heard> {
  const hearing = new Hearing(question.onText);
  const { signal } = question;
  const body = Buffer.from(bodyOf(question));
  return new Promise((resolve) => {
    const headers = { 'content-type': 'application/json', 'content-length': body.byteLength, ...question.headers };
    const outgoing = request(`${gateway}/v1/chat/completions`, { method: 'POST', headers, agent });
    const leave = () => outgoing.destroy();
    const deadline = setTimeout(leave, answerMs);
    outgoing.on('response', (response) => hearing.listen(response));
    // The connection broke: what arrived until then stands.
    outgoing.on('error', () => undefined);
    outgoing.on('close', () => {
      clearTimeout(deadline);
      signal?.removeEventListener('abort', leave);
      resolve(hearing.heard());
    });
    if (signal?.aborted === true) leave();
    else signal?.addEventListener('abort', leave, { once: true });
    outgoing.end(body);
  });
}

function bodyOf({ messages, tools, model = 'backtalk', stream = true, maxTokens, seed }: Question): string {
  return JSON.stringify({ model, messages, tools, stream, max_tokens: maxTokens, seed });
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

  listen(response: IncomingMessage): void {
    const { statusCode = 0, headers } = response;
    const named = (name: string) => String(headers[name] ?? '');
    this.status = statusCode;
    this.turn = named('x-backtalk-turn');
    this.weights = named('x-backtalk-weights');
    this.session = named('x-backtalk-session');
    const isStream = named('content-type').startsWith('text/event-stream');
    const pieces: Buffer[] = [];
    response.on('data', (piece: Buffer) => (isStream ? this.chunk(piece) : pieces.push(piece)));
    response.on('end', () => (isStream ? undefined : this.take(Buffer.concat(pieces).toString('utf8'))));
    // It broke off: the request's own end says so.
    response.on('error', () => undefined);
  }

  private chunk(bytes: Uint8Array): void {
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
    client,
    turn,
    weights,
    status,
    finished,
    error,
    continues,
    optedOut,
    bytes: Buffer.byteLength(text, 'utf8'),
    hash: hashOf(text),
  };
}
