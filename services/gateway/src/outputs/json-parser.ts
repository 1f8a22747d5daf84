// Parses large JSON beside the event loop, one text at a time, in a thread with a heap of its own.
//
// In: bytes, which are the thread's from then on, within the bounds of a body. Out: the value, or a refusal. A text that
// takes too long ends the thread and nothing else. One that takes more memory than the thread has may end the process
// (Node gives a full heap up only most of the time), so the heap is twice what the costliest body takes. What is handed back
// is copied on the loop, which takes a third of the time that parsing takes.
import { Worker } from 'node:worker_threads';
import { Mutex, type BacktalkError, type Clock } from '@backtalk/kit';
import { gatewayErrors } from '../errors.js';

interface Parsed {
  readonly value?: unknown;
  /** Why it cannot be read. */
  readonly why?: string;
}

const parseWaitMs = 5_000;
/** A thread that has nothing to do gives its memory back. */
const idleMs = 10_000;
/** The costliest bodies take half of it: twice as many members as a body may have, each key another one, or 8 MiB of text. */
export const parserHeapMebibytes = 128;
const retryAfterSeconds = 1;

/** The thread's whole program, as text: it is the same from sources and from what is built. */
const program = `
const { isUtf8 } = require('node:buffer');
const { parentPort } = require('node:worker_threads');
parentPort.on('message', (bytes) => {
  const json = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length);
  if (!isUtf8(json)) return parentPort.postMessage({ why: 'it is not valid UTF-8' });
  let value;
  try {
    value = JSON.parse(json.toString('utf8'));
  } catch {
    return parentPort.postMessage({ why: 'it is not valid JSON' });
  }
  parentPort.postMessage({ value });
});
`;

export class JsonParser {
  private readonly texts = new Mutex();
  private thread: Worker | undefined;
  private cancelIdle: () => void = () => undefined;

  constructor(
    private readonly clock: Clock,
    private readonly heapMebibytes: number,
  ) {}

  /** Takes the bytes' memory with it. */
  parse(bytes: Buffer): Promise<unknown> {
    return this.texts.run(async () => {
      this.cancelIdle();
      try {
        const { value, why } = await this.ask(bytes);
        if (why !== undefined) throw gatewayErrors.invalidJson({ why });
        return value;
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

  private ask(bytes: Buffer): Promise<Parsed> {
    const thread = (this.thread ??= startThread(this.heapMebibytes));
    return new Promise((resolve, reject) => {
      const settle = (): void => {
        cancel();
        thread.off('message', onParsed);
        thread.off('error', onError);
      };
      const fail = (error: BacktalkError): void => {
        settle();
        // Without a listener, what it still says at its end would be thrown.
        thread.on('error', () => undefined);
        this.stop();
        reject(error);
      };
      const onParsed = (parsed: Parsed): void => {
        settle();
        resolve(parsed);
      };
      const onError = (cause: unknown): void =>
        fail(gatewayErrors.invalidJson({ why: 'reading it takes too much memory' }, cause));
      const cancel = this.clock.timer(parseWaitMs, () => fail(gatewayErrors.overloaded({ retryAfterSeconds })));
      thread.on('message', onParsed);
      thread.on('error', onError);
      const { buffer, byteLength } = bytes;
      // Small ones share their memory with others, and are copied.
      thread.postMessage(bytes, buffer instanceof ArrayBuffer && buffer.byteLength === byteLength ? [buffer] : []);
    });
  }
}

function startThread(heapMebibytes: number): Worker {
  const thread = new Worker(program, {
    eval: true,
    resourceLimits: { maxOldGenerationSizeMb: heapMebibytes },
    // The gateway's own flags for its heap are not the thread's.
    execArgv: [],
  });
  thread.unref();
  return thread;
}
