// The one error class of the house. In: a code, what to do about it, and words for the caller.
// Out: an error whose handling follows from itself. It never carries user text in `message` or `detail`.

/** What becomes of the work that failed: try it again, give it up, or stop the service. */
export type Retry = 'later' | 'never' | 'stop';

export interface ErrorFacts {
  readonly code: string;
  readonly retry: Retry;
  readonly message: string;
  /** HTTP status for callers outside; absent where the error never reaches one. */
  readonly status?: number | undefined;
  readonly detail?: Readonly<Record<string, unknown>>;
  /** The real cause: it goes to the log, never to the caller. */
  readonly cause?: unknown;
}

export class BacktalkError extends Error {
  override readonly name = 'BacktalkError';
  readonly code: string;
  readonly retry: Retry;
  readonly status: number | undefined;
  readonly detail: Readonly<Record<string, unknown>>;

  constructor(facts: ErrorFacts) {
    super(facts.message, facts.cause === undefined ? undefined : { cause: facts.cause });
    this.code = facts.code;
    this.retry = facts.retry;
    this.status = facts.status;
    this.detail = Object.freeze({ ...facts.detail });
  }
}

export function isBacktalkError(error: unknown, code?: string): error is BacktalkError {
  return error instanceof BacktalkError && (code === undefined || error.code === code);
}
