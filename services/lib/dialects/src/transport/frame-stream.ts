// A streamed reply as an async iterator of parsed frames.
//
// In: the chunks of one call. Out: what `FrameReader` makes of each data line, in order. It ends only after the
// reader accepted `[DONE]`; every other end throws. Leaving the loop cancels the call. At most `framesMax` frames wait
// here: beyond that the socket is paused. Each line is parsed once, when it arrives.
import { asBacktalkError, type BacktalkError } from '@backtalk/kit';
import { engineErrors } from '../errors.js';
import type { CallSink, EngineCall, ResponseHeaders } from './engine-call.js';
import type { Reply } from './engine-pool.js';
import { SseData } from './sse-data.js';

export interface FrameReader<F> {
  /** Throws when the data is no frame, or says that the engine failed. */
  frame(data: string): F;
  /** Called at `[DONE]`; throws when the answer was not complete by then. */
  done(): void;
  /** Makes an error of a reply that is not a stream. */
  refusal(reply: Reply): BacktalkError;
}

const framesMax = 256;
const refusalBytesMax = 256 * 1024;

interface Waiter<F> {
  readonly resolve: (result: IteratorResult<F, undefined>) => void;
  readonly reject: (error: Error) => void;
}

export class FrameStream<F> implements CallSink, AsyncIterableIterator<F, undefined> {
  call: EngineCall | undefined;
  private readonly frames: F[] = [];
  private taken = 0;
  private readonly lines = new SseData();
  private waiter: Waiter<F> | undefined;
  private ended = false;
  private error: BacktalkError | undefined;
  private refused: { status: number; headers: ResponseHeaders; text: string } | undefined;
  private paused = false;

  constructor(private readonly reader: FrameReader<F>) {}

  [Symbol.asyncIterator](): this {
    return this;
  }

  next(): Promise<IteratorResult<F, undefined>> {
    const frame = this.frames[this.taken];
    if (frame !== undefined) {
      this.take();
      return Promise.resolve({ done: false, value: frame });
    }
    if (this.error !== undefined) return Promise.reject(this.error);
    if (this.ended) return Promise.resolve({ done: true, value: undefined });
    return new Promise((resolve, reject) => (this.waiter = { resolve, reject }));
  }

  return(): Promise<IteratorResult<F, undefined>> {
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
    try {
      if (!this.lines.feed(chunk, (data) => this.line(data)))
        throw engineErrors.replyInvalid({ what: 'line too long' });
    } catch (error) {
      this.call?.fail(asBacktalkError(error));
    }
  }

  end(): void {
    if (this.refused !== undefined) this.fail(this.reader.refusal(this.refused));
    else if (!this.ended) this.fail(engineErrors.streamBroken({ why: 'it ended without a final frame' }));
  }

  fail(error: BacktalkError): void {
    if (this.ended || this.error !== undefined) return;
    this.error = error;
    const waiter = this.waiter;
    this.waiter = undefined;
    waiter?.reject(error);
  }

  private line(data: string): void {
    if (this.ended) return;
    if (data === '[DONE]') {
      this.reader.done();
      this.ended = true;
      this.waiter?.resolve({ done: true, value: undefined });
      this.waiter = undefined;
      return;
    }
    const frame = this.reader.frame(data);
    if (this.waiter !== undefined) {
      const waiter = this.waiter;
      this.waiter = undefined;
      waiter.resolve({ done: false, value: frame });
      return;
    }
    this.frames.push(frame);
    if (!this.paused && this.frames.length - this.taken > framesMax) {
      this.paused = true;
      this.call?.pause();
    }
  }

  private take(): void {
    this.taken += 1;
    if (this.taken < this.frames.length) return;
    this.frames.length = 0;
    this.taken = 0;
    if (!this.paused) return;
    this.paused = false;
    this.call?.resume();
  }
}
