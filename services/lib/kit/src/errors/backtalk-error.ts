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

/** One row of a catalogue: the code is the contract, the message is for people. */
export interface ErrorSpec {
  readonly code: string;
  readonly retry: Retry;
  readonly status?: number;
  readonly message: (params: never) => string;
}

export interface CatalogueRow {
  readonly owner: string;
  readonly code: string;
  readonly retry: Retry;
  readonly status?: number;
}

type Factory<M> = M extends () => string
  ? (params?: object, cause?: unknown) => BacktalkError
  : M extends (params: infer P) => string
    ? (params: P, cause?: unknown) => BacktalkError
    : never;

export type ErrorFactories<S extends Record<string, ErrorSpec>> = {
  readonly [K in keyof S]: Factory<S[K]['message']>;
} & { readonly catalogue: readonly CatalogueRow[] };

export function defineErrors<const S extends Record<string, ErrorSpec>>(owner: string, specs: S): ErrorFactories<S> {
  const factories = Object.entries(specs).map(([name, { code, retry, status, message }]) => [
    name,
    (params: object = {}, cause?: unknown) =>
      new BacktalkError({ code, retry, status, message: message(params as never), detail: { ...params }, cause }),
  ]);
  const catalogue = Object.values(specs).map(({ code, retry, status }) =>
    Object.freeze(status === undefined ? { owner, code, retry } : { owner, code, retry, status }),
  );
  return Object.freeze({ ...Object.fromEntries(factories), catalogue }) as ErrorFactories<S>;
}

/** System errors that mean the other side is away for now, so the same work may succeed later. */
const awayCodes: ReadonlySet<string> = new Set([
  'ECONNREFUSED',
  'ECONNRESET',
  'ECONNABORTED',
  'EHOSTUNREACH',
  'ENETUNREACH',
  'ENOTFOUND',
  'EAI_AGAIN',
  'EPIPE',
  'ETIMEDOUT',
]);

export function asBacktalkError(thrown: unknown): BacktalkError {
  if (thrown instanceof BacktalkError) return thrown;
  if (isAbort(thrown)) return kitErrors.cancelled({}, thrown);
  if (!(thrown instanceof Error)) return kitErrors.internal({}, thrown);
  // The name that AbortSignal.timeout() gives its reason.
  if (thrown.name === 'TimeoutError') return kitErrors.deadlineExceeded({}, thrown);
  const code = 'code' in thrown && typeof thrown.code === 'string' ? thrown.code : undefined;
  if (code !== undefined && awayCodes.has(code)) return kitErrors.unreachable({ reason: code }, thrown);
  return kitErrors.internal({}, thrown);
}

/** Whether work ended because an AbortSignal said so: the name that `abort()` gives its reason. */
export function isAbort(thrown: unknown): boolean {
  return thrown instanceof Error && thrown.name === 'AbortError';
}

export const kitErrors = defineErrors('kit', {
  internal: {
    code: 'internal',
    status: 500,
    retry: 'later',
    message: () => 'Something went wrong inside the service; the log has the cause.',
  },
  cancelled: {
    code: 'cancelled',
    status: 499,
    retry: 'later',
    message: () => 'The work was cancelled before it was done.',
  },
  deadlineExceeded: {
    code: 'deadline_exceeded',
    status: 504,
    retry: 'later',
    message: () => 'The work took longer than its deadline.',
  },
  unreachable: {
    code: 'unreachable',
    status: 503,
    retry: 'later',
    message: (p: { reason: string }) => `A part that is needed cannot be reached (${p.reason}).`,
  },
  configInvalid: {
    code: 'config_invalid',
    retry: 'stop',
    message: (p: { problems: readonly string[] }) => p.problems.join('\n'),
  },
  addressInUse: {
    code: 'address_unavailable',
    retry: 'stop',
    message: (p: { address: string; reason: string }) => `Cannot listen on ${p.address} (${p.reason}).`,
  },
  stopIncomplete: {
    code: 'stop_incomplete',
    retry: 'stop',
    message: (p: { parts: readonly string[] }) => `These parts did not stop cleanly: ${p.parts.join(', ')}.`,
  },
});
