// A streamed chat answer as an async iterator of frames.
//
// In: the chunks of one call. Out: a frame for each data line, in order. It ends only after an answer that was complete by
// `[DONE]`; every other end throws. Leaving the loop cancels the call. Chunks are read when a frame is asked for and it is
// this stream's turn; beyond `unreadBytesMax` of them, or where there is no room for more, the socket is paused. Each line
// is parsed once.
import { asBacktalkError, isJsonObject, type BacktalkError } from '@backtalk/kit';
import type { EngineFrame, StreamOptions } from '../engine-client.js';
import { engineErrors } from '../errors.js';
import type { CallSink, EngineCall, ResponseHeaders } from '../transport/engine-call.js';
import type { Reply } from '../transport/engine-connections.js';
import { SseData } from '../transport/sse-data.js';
import { frameOf, parseChat } from './chat-wire.js';
import { refusalInStream, refusalOf, type CallContext } from './refusals.js';

const unreadBytesMax = 64 * 1024;
const refusalBytesMax = 256 * 1024;

interface Waiter {
  readonly resolve: (result: IteratorResult<EngineFrame, undefined>) => void;
  readonly reject: (error: Error) => void;
}

const lineEnd = Buffer.from('\n');

export class FrameStream implements CallSink, AsyncIterableIterator<EngineFrame, undefined> {
  call: EngineCall | undefined;
  private unread: Buffer[] = [];
  private unreadBytes = 0;
  private readonly frames: EngineFrame[] = [];
  private frameBytes = 0;
  private taken = 0;
  /** What of all that is held has room. */
  private roomBytes = 0;
  private readonly lines = new SseData();
  private waiter: Waiter | undefined;
  private turnIsAsked = false;
  private ended = false;
  private error: BacktalkError | undefined;
  private refused: { -readonly [K in keyof Reply]: Reply[K] } | undefined;
  private finished = false;
  private paused = false;

  constructor(
    private readonly context: CallContext,
    private readonly options: Pick<StreamOptions, 'turn' | 'room'> = {},
  ) {}

  [Symbol.asyncIterator](): this {
    return this;
  }

  next(): Promise<IteratorResult<EngineFrame, undefined>> {
    return new Promise((resolve, reject) => {
      this.waiter = { resolve, reject };
      if (this.taken < this.frames.length) this.answer();
      else this.askTurn();
    });
  }

  return(): Promise<IteratorResult<EngineFrame, undefined>> {
    if (!this.ended) this.call?.fail(engineErrors.aborted({}));
    return Promise.resolve({ done: true, value: undefined });
  }

  start(status: number, headers: ResponseHeaders): void {
    if (status !== 200) this.refused = { status, headers, text: '' };
  }

  data(chunk: Buffer): void {
    if (this.refused !== undefined) {
      if (this.refused.text.length < refusalBytesMax) this.refused.text += chunk.toString('utf8');
      return;
    }
    if (this.ended) return;
    this.unread.push(chunk);
    this.unreadBytes += chunk.length;
    if (this.roomRefused() !== undefined || this.unreadBytes > unreadBytesMax) {
      this.paused = true;
      this.call?.pause();
    }
    this.askTurn();
  }

  end(): void {
    // Whether the answer is complete stands in what came last, which may lack its line's end.
    this.read();
    this.lines.feed(lineEnd, (data) => {
      if (data === '[DONE]' && this.finished) this.ended = true;
    });
    // vLLM and SGLang say `[DONE]` after the last of all frames; of others a finish reason and an orderly end are enough.
    if (this.finished && this.context.dialect === 'openai') this.ended = true;
    if (this.refused !== undefined) this.fail(refusalOf(this.refused, this.context));
    else if (!this.ended) this.fail(engineErrors.streamBroken({ why: 'it ended without a final frame' }));
    this.askTurn();
  }

  fail(error: BacktalkError): void {
    this.read();
    if (!this.ended) this.error ??= error;
    this.askTurn();
  }

  /** Only where a frame is waited for, and there is something to say. */
  private askTurn(): void {
    const isOver = this.ended || this.error !== undefined;
    if (this.turnIsAsked || this.waiter === undefined || (this.unread.length === 0 && !isOver)) return;
    this.turnIsAsked = true;
    const { turn = () => Promise.resolve() } = this.options;
    void turn().then(() => {
      this.turnIsAsked = false;
      this.read();
      this.answer();
    });
  }

  private answer(): void {
    const { waiter, error } = this;
    if (waiter === undefined) return;
    this.waiter = undefined;
    const frame = this.frames[this.taken];
    if (frame !== undefined) {
      this.taken += 1;
      if (this.taken === this.frames.length) {
        this.frames.length = 0;
        this.frameBytes = 0;
        this.taken = 0;
        this.roomRefused();
      }
      waiter.resolve({ done: false, value: frame });
    } else if (error !== undefined) waiter.reject(error);
    else if (this.ended) waiter.resolve({ done: true, value: undefined });
    else this.waiter = waiter;
  }

  private read(): void {
    const { unread } = this;
    this.unread = [];
    this.unreadBytes = 0;
    try {
      for (const chunk of unread)
        if (!this.lines.feed(chunk, (data) => this.line(data)))
          throw engineErrors.replyInvalid({ what: 'line too long' });
      const refused = this.roomRefused();
      // To hold the engine back makes other room free again, and not that of a line which it has not ended.
      if (refused !== undefined && this.lines.unfinishedBytes > unreadBytesMax) throw refused;
    } catch (thrown) {
      this.error ??= asBacktalkError(thrown);
      this.call?.fail(this.error);
    }
    if (!this.paused) return;
    this.paused = false;
    // What waits in the socket comes before this returns.
    this.call?.resume();
  }

  private line(data: string): void {
    if (this.ended) return;
    if (data === '[DONE]') {
      // A dying engine sends `[DONE]` too: only a finish reason makes an answer complete.
      if (!this.finished) throw engineErrors.streamBroken({ why: 'no finish reason' });
      this.ended = true;
      return;
    }
    const raw = parseChat(data);
    if (isJsonObject(raw.error)) throw refusalInStream(raw.error, this.context);
    const frame = frameOf(raw);
    if (frame.finishReason !== undefined) this.finished = true;
    this.frames.push(frame);
    this.frameBytes += data.length;
  }

  /** Takes room for what is held now, or gives back what is held no longer; why there is none. */
  private roomRefused(): BacktalkError | undefined {
    const bytes = this.unreadBytes + this.lines.unfinishedBytes + this.frameBytes;
    const more = bytes - this.roomBytes;
    try {
      if (more > 0) this.options.room?.grow(more);
      else this.options.room?.shrink(-more);
    } catch (thrown) {
      return asBacktalkError(thrown);
    }
    this.roomBytes = bytes;
    return undefined;
  }
}
