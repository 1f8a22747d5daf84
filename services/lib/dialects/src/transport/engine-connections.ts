// The connections to one engine.
//
// In: a method, a path, a body. Out: a whole reply, or the data lines of a streamed one. Every call has a deadline.
// Connections are dropped after 4 s of idleness, because engines close theirs after 5 s without a word.
import { Readable } from 'node:stream';
import { asBacktalkError } from '@backtalk/kit';
import { type Dispatcher, Pool } from 'undici';
import { engineErrors } from '../errors.js';
import { jsonPieces, slicesOf } from '../json-text.js';
import type { RawObject, ReplyRoom } from '../engine-client.js';
import { type CallLimits, type CallSink, EngineCall, type ResponseHeaders } from './engine-call.js';

export interface EngineAddress {
  /** Base URL, with or without /v1; one that has another version in its path is the whole of it. */
  readonly url: string;
  readonly apiKey?: string | undefined;
}

export interface Reply {
  readonly status: number;
  readonly headers: ResponseHeaders;
  readonly text: string;
}

interface ReplyLimits extends CallLimits {
  readonly room?: ReplyRoom | undefined;
}

const versionPath = '/v1';
/** As in /v1beta/openai or /api/paas/v4. */
const ownVersion = /\/v\d\w*(?=\/|$)/;
const keepAliveMs = 4_000;
const connectMs = 5_000;
const connectionsMax = 1_024;
const replyBytesMax = 64 * 1024 * 1024;
/** Copied into one in 50 µs. */
const gatheredBytesMax = 256 * 1024;

export class EngineConnections {
  private readonly pool: Pool;
  private readonly basePath: string;
  private readonly hasOwnVersion: boolean;
  private readonly headers: Record<string, string>;
  private readonly jsonHeaders: Record<string, string>;

  constructor({ url, apiKey }: EngineAddress) {
    const { origin, pathname } = new URL(url);
    const path = pathname.replace(/\/$/, '');
    const isV1 = path.endsWith(versionPath);
    this.basePath = isV1 ? path.slice(0, -versionPath.length) : path;
    this.hasOwnVersion = !isV1 && ownVersion.test(path);
    this.headers = apiKey === undefined || apiKey === '' ? {} : { authorization: `Bearer ${apiKey}` };
    this.jsonHeaders = { ...this.headers, 'content-type': 'application/json' };
    this.pool = new Pool(origin, {
      connections: connectionsMax,
      keepAliveTimeout: keepAliveMs,
      keepAliveMaxTimeout: keepAliveMs,
      headersTimeout: 0,
      bodyTimeout: 0,
      connect: { timeout: connectMs, noDelay: true },
    });
  }

  /** The whole reply, whatever its status. */
  request(method: 'GET' | 'POST', path: string, body: RawObject | undefined, limits: ReplyLimits): Promise<Reply> {
    return new Promise((resolve, reject) => {
      const sink = new WholeReply(resolve, reject, limits.room);
      sink.call = this.dispatch(method, path, body, limits, sink);
    });
  }

  /** Starts a call whose reply goes to the sink as it comes. */
  dispatch(
    method: 'GET' | 'POST',
    path: string,
    body: RawObject | undefined,
    limits: CallLimits,
    sink: CallSink,
  ): EngineCall {
    const call = new EngineCall(limits, sink);
    if (limits.signal?.aborted === true) {
      call.fail(engineErrors.aborted({}));
      return call;
    }
    this.pool.dispatch({ method, path: this.basePath + this.versioned(path), ...this.outgoing(body) }, call);
    return call;
  }

  private versioned(path: string): string {
    return this.hasOwnVersion && path.startsWith(`${versionPath}/`) ? path.slice(versionPath.length) : path;
  }

  /** What is large goes out piece by piece, as the connection takes it. */
  private outgoing(body: RawObject | undefined): Pick<Dispatcher.DispatchOptions, 'headers' | 'body'> {
    if (body === undefined) return { headers: this.headers, body: null };
    const pieces = jsonPieces(body);
    let bytes = 0;
    for (const piece of pieces) bytes += piece.byteLength;
    if (bytes <= gatheredBytesMax) return { headers: this.jsonHeaders, body: Buffer.concat(pieces, bytes) };
    return { headers: { ...this.jsonHeaders, 'content-length': String(bytes) }, body: Readable.from(slicesOf(pieces)) };
  }

  /** Ends every call at once. */
  close(): Promise<void> {
    return this.pool.destroy();
  }

  /** Takes no further call; resolves when those in flight have come to their end. */
  leave(): Promise<void> {
    return this.pool.close();
  }
}

class WholeReply implements CallSink {
  call: EngineCall | undefined;
  private status = 0;
  private headers: ResponseHeaders = {};
  private readonly chunks: Buffer[] = [];
  private bytes = 0;
  private declared = 0;

  constructor(
    private readonly resolve: (reply: Reply) => void,
    readonly fail: (error: Error) => void,
    private readonly room: ReplyRoom | undefined,
  ) {}

  start(status: number, headers: ResponseHeaders): void {
    this.status = status;
    this.headers = headers;
    // What is declared is refused before it comes.
    this.declared = Number(headers['content-length'] ?? 0);
    this.take(this.declared);
  }

  data(chunk: Buffer): void {
    this.bytes += chunk.length;
    if (this.bytes > replyBytesMax) this.call?.fail(engineErrors.replyInvalid({ what: 'reply too long' }));
    else this.chunks.push(chunk);
    if (this.bytes > this.declared) this.take(chunk.length);
  }

  end(): void {
    const [first, second] = this.chunks;
    const whole = first !== undefined && second === undefined ? first : Buffer.concat(this.chunks);
    const text = whole.toString('utf8');
    this.resolve({ status: this.status, headers: this.headers, text });
  }

  private take(bytes: number): void {
    try {
      this.room?.grow(bytes);
    } catch (thrown) {
      this.call?.fail(asBacktalkError(thrown));
    }
  }
}
