// Turns the data lines of one streamed chat answer into frames, and knows whether the answer was complete.
import type { BacktalkError } from '@backtalk/kit';
import type { EngineFrame } from '../engine-client.js';
import { engineErrors } from '../errors.js';
import type { Reply } from '../transport/engine-pool.js';
import type { FrameReader } from '../transport/frame-stream.js';
import { frameOf, parseChat } from './chat-wire.js';
import { type CallContext, refusalInStream, refusalOf } from './refusals.js';

export class ChatFrameReader implements FrameReader<EngineFrame> {
  private finished = false;

  constructor(private readonly context: CallContext) {}

  frame(data: string): EngineFrame {
    const raw = parseChat(data);
    if (raw.error !== undefined) throw refusalInStream(raw.error, this.context);
    const frame = frameOf(raw);
    if (frame.finishReason !== undefined) this.finished = true;
    return frame;
  }

  /** A dying engine sends `[DONE]` too: only a finish reason makes an answer complete. */
  done(): void {
    if (!this.finished) throw engineErrors.streamBroken({ why: 'no finish reason' });
  }

  refusal(reply: Reply): BacktalkError {
    return refusalOf(reply, this.context);
  }
}
