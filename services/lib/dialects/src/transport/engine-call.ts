// One HTTP call to an engine: its deadlines, its cancellation, and the translation of what goes wrong on the wire.
//
// In: undici's events. Out: `start`, `data`, `end` or `fail` on the sink, `fail` at most once and nothing after it.
// Never: an opinion about status codes or bodies.
import { BacktalkError } from '@backtalk/kit';
import type { Dispatcher } from 'undici';
import { engineErrors } from '../errors.js';

export interface CallLimits {
  readonly signal?: AbortSignal | undefined;
  readonly deadlineMs: number;
  readonly firstByteMs?: number | undefined;
  readonly idleMs?: number | undefined;
}

export interface CallSink {
  start(status: number, headers: ResponseHeaders): void;
  data(chunk: Buffer): void;
  end(): void;
  fail(error: BacktalkError): void;
}

export type ResponseHeaders = Readonly<Record<string, string | string[] | undefined>>;

export class EngineCall implements Dispatcher.DispatchHandler {
  private controller: Dispatcher.DispatchController | undefined;
  private settled = false;
  private answering = false;
  private readonly deadline: NodeJS.Timeout;
  private gap: NodeJS.Timeout | undefined;
  private readonly onAbort = () => this.fail(engineErrors.aborted({}));

  constructor(
    private readonly limits: CallLimits,
    private readonly sink: CallSink,
  ) {
    const { deadlineMs, firstByteMs, signal } = limits;
    this.deadline = setTimeout(() => this.fail(engineErrors.timeout({ what: 'deadline', ms: deadlineMs })), deadlineMs);
    if (firstByteMs !== undefined) this.limitGap('first byte', firstByteMs);
    signal?.addEventListener('abort', this.onAbort, { once: true });
  }

  /** Ends the call and closes its connection, so that the engine stops working on it. */
  fail(error: BacktalkError): void {
    if (this.settled) return;
    this.settle();
    this.controller?.abort(error);
    this.sink.fail(error);
  }

  /** What is not read meanwhile is no silence of the engine. */
  pause(): void {
    clearTimeout(this.gap);
    this.controller?.pause();
  }

  resume(): void {
    if (this.settled) return;
    this.limitSilence();
    this.controller?.resume();
  }

  onRequestStart(controller: Dispatcher.DispatchController): void {
    this.controller = controller;
    if (this.settled) controller.abort(engineErrors.aborted({}));
  }

  onResponseStart(_controller: Dispatcher.DispatchController, status: number, headers: ResponseHeaders): void {
    if (this.settled || status < 200) return;
    this.answering = true;
    this.sink.start(status, headers);
  }

  onResponseData(_controller: Dispatcher.DispatchController, chunk: Buffer): void {
    if (this.settled) return;
    this.limitSilence();
    this.sink.data(chunk);
  }

  onResponseEnd(): void {
    if (this.settled) return;
    this.settle();
    this.sink.end();
  }

  onResponseError(_controller: Dispatcher.DispatchController, cause: Error): void {
    if (this.settled) return;
    this.settle();
    if (cause instanceof BacktalkError) {
      this.sink.fail(cause);
      return;
    }
    const why = 'code' in cause && typeof cause.code === 'string' ? cause.code : cause.name;
    this.sink.fail(this.brokenBy(why, cause));
  }

  /** Without a controller no connection was there, and the engine knows nothing of the request. */
  private brokenBy(why: string, cause: Error): BacktalkError {
    if (this.answering) return engineErrors.streamBroken({ why }, cause);
    return this.controller === undefined
      ? engineErrors.unreachable({ why }, cause)
      : engineErrors.connectionLost({ why }, cause);
  }

  private limitSilence(): void {
    const { idleMs } = this.limits;
    if (idleMs === undefined) clearTimeout(this.gap);
    else this.limitGap('silence', idleMs);
  }

  private limitGap(what: string, ms: number): void {
    clearTimeout(this.gap);
    this.gap = setTimeout(() => this.fail(engineErrors.timeout({ what, ms })), ms);
  }

  private settle(): void {
    this.settled = true;
    clearTimeout(this.deadline);
    clearTimeout(this.gap);
    this.limits.signal?.removeEventListener('abort', this.onAbort);
  }
}
