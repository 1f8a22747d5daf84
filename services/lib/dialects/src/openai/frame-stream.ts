// A streamed chat answer as an async iterator of frames.
//
// In: the chunks of one call. Out: a frame for each data line, in order. It ends only after an answer that was complete by
// `[DONE]`; every other end throws. Leaving the loop cancels the call. At most `framesMax` frames wait here: beyond that
// the socket is paused. Each line is parsed once, when it arrives.
import { asBacktalkError, type BacktalkError } from '@backtalk/kit';
import type { EngineFrame } from '../engine-client.js';
import { engineErrors } from '../errors.js';
import type { CallSink, EngineCall, ResponseHeaders } from '../transport/engine-call.js';
import type { Reply } from '../transport/engine-connections.js';
import { SseData } from '../transport/sse-data.js';
import { frameOf, parseChat } from './chat-wire.js';
import { refusalInStream, refusalOf, type CallContext } from './refusals.js';

const framesMax = 256;
const refusalBytesMax = 256 * 1024;

interface Waiter {
  readonly resolve: (result: IteratorResult<EngineFrame, undefined>) => void;
  readonly reject: (error: Error) => void;
}

export class FrameStream implements CallSink, AsyncIterableIterator<EngineFrame, undefined> {
  call: EngineCall | undefined;
  private readonly frames: EngineFrame[] = [];
  private taken = 0;
  private readonly lines = new SseData();
  private waiter: Waiter | undefined;
  private ended = false;
  private error: BacktalkError | undefined;
  private refused: { -readonly [K in keyof Reply]: Reply[K] } | undefined;
  private finished = false;
  private paused = false;

  constructor(private readonly context: CallContext) {}

  [Symbol.asyncIterator](): this {
    return this;
  }

  next(): Promise<IteratorResult<EngineFrame, undefined>> {
    const frame = this.frames[this.taken];
    if (frame !== undefined) {
      this.taken += 1;
      if (this.taken >= this.frames.length) {
        this.frames.length = 0;
        this.taken = 0;
        if (this.paused) {
          this.paused = false;
          this.call?.resume();
        }
      }
      return Promise.resolve({ done: false, value: frame });
    }
    if (this.error !== undefined) return Promise.reject(this.error);
    if (this.ended) return Promise.resolve({ done: true, value: undefined });
    return new Promise((resolve, reject) => (this.waiter = { resolve, reject }));
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
    try {
      if (!this.lines.feed(chunk, (data) => this.line(data)))
        throw engineErrors.replyInvalid({ what: 'line too long' });
    } catch (error) {
      this.call?.fail(asBacktalkError(error));
    }
  }

  end(): void {
    if (this.refused !== undefined) this.fail(refusalOf(this.refused, this.context));
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
      // A dying engine sends `[DONE]` too: only a finish reason makes an answer complete.
      if (!this.finished) throw engineErrors.streamBroken({ why: 'no finish reason' });
      this.ended = true;
      this.waiter?.resolve({ done: true, value: undefined });
      this.waiter = undefined;
      return;
    }
    const raw = parseChat(data);
    if (raw.error !== undefined) throw refusalInStream(raw.error, this.context);
    const frame = frameOf(raw);
    if (frame.finishReason !== undefined) this.finished = true;
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
}
