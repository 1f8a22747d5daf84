// Reads chat bodies: small ones at once, large ones beside the event loop, one at a time, in a thread with a heap of its own.
//
// In: a body within its bounds, whose bytes are the thread's from then on. Out: the request, or a refusal. A body that takes
// too long ends the thread and nothing else. One that takes more memory than the thread has may end the process (Node gives
// a full heap up only most of the time), so the heap is twice what the costliest body takes.
import { Worker } from 'node:worker_threads';
import { asBacktalkError, BacktalkError, Mutex, type Clock } from '@backtalk/kit';
import { gatewayErrors } from '../errors.js';
import { largeBodyBytes } from '../domain/body-budget.js';
import { readChat, type ChatRequest, type ReadingRules } from '../domain/chat-request.js';
import type { Read, ToRead } from './chat-reader-thread.js';

interface Given {
  readonly bytes: Buffer;
  readonly members: number;
}

/** So many take as long as a large body's bytes: 10 ms. */
const largeBodyMembers = 10_000;
const readWaitMs = 5_000;
/** A thread that has nothing to do gives its memory back. */
const idleMs = 10_000;
/** The costliest bodies take half of it: twice as many members as a body may have, each key another one, or 8 MiB of text. */
export const readerHeapMebibytes = 128;
const retryAfterSeconds = 1;
/** What was built, also where sources run. */
const program = new URL('../../dist/outputs/chat-reader-thread.js', import.meta.url);

export class ChatReader {
  private readonly bodies = new Mutex();
  private thread: Worker | undefined;
  private cancelIdle: () => void = () => undefined;

  constructor(
    private readonly clock: Clock,
    private readonly heapMebibytes: number,
  ) {}

  /** Takes a large body's memory with it. */
  async read({ bytes, members }: Given, given: ReadingRules): Promise<ChatRequest> {
    const { messagesMax, temperature, api, wanted = 'answer', fromLog } = given;
    const rules = { messagesMax, temperature, api, wanted, fromLog };
    if (bytes.length + (fromLog?.length ?? 0) <= largeBodyBytes && members <= largeBodyMembers)
      return readChat(bytes, rules);
    return this.bodies.run(async () => {
      this.cancelIdle();
      try {
        const read = await this.ask({ bytes, rules });
        if ('refusal' in read) throw new BacktalkError(read.refusal);
        return read.request;
      } finally {
        this.cancelIdle = this.clock.timer(idleMs, () => this.stop());
      }
    });
  }

  stop(): void {
    this.cancelIdle();
    const { thread } = this;
    this.thread = undefined;
    // It ends by itself: its exit code says nothing.
    void thread?.terminate();
  }

  private ask(given: ToRead): Promise<Read> {
    const thread = (this.thread ??= startThread(this.heapMebibytes));
    return new Promise((resolve, reject) => {
      const settle = (): void => {
        cancel();
        thread.off('message', onRead);
        thread.off('error', onError);
      };
      const fail = (error: BacktalkError): void => {
        settle();
        // Without a listener, what it still says at its end would be thrown.
        thread.on('error', () => undefined);
        this.stop();
        reject(error);
      };
      const onRead = (read: Read): void => {
        settle();
        resolve(read);
      };
      const onError = (cause: NodeJS.ErrnoException): void =>
        fail(
          cause.code === 'ERR_WORKER_OUT_OF_MEMORY'
            ? gatewayErrors.invalidJson({ why: 'reading it takes too much memory' }, cause)
            : asBacktalkError(cause),
        );
      const cancel = this.clock.timer(readWaitMs, () => fail(gatewayErrors.overloaded({ retryAfterSeconds })));
      thread.on('message', onRead);
      thread.on('error', onError);
      const { buffer, byteLength } = given.bytes;
      // Small ones share their memory with others, and are copied.
      thread.postMessage(given, buffer instanceof ArrayBuffer && buffer.byteLength === byteLength ? [buffer] : []);
    });
  }
}

function startThread(heapMebibytes: number): Worker {
  const thread = new Worker(program, {
    resourceLimits: { maxOldGenerationSizeMb: heapMebibytes },
    // The gateway's own flags for its heap are not the thread's.
    execArgv: [],
  });
  thread.unref();
  return thread;
}
