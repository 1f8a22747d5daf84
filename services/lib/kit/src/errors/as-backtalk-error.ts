// Translates whatever was thrown into a BacktalkError, once, at the edge. It never lets a foreign message reach
// a caller: foreign words stay in `cause`, which only the log shows.
import { BacktalkError } from './backtalk-error.js';
import { kitErrors } from './kit-errors.js';

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
  if (thrown instanceof Error) return fromForeign(thrown);
  return kitErrors.internal({}, thrown);
}

/** Whether work ended because an AbortSignal said so: the name that `abort()` gives its reason. */
export function isAbort(thrown: unknown): boolean {
  return thrown instanceof Error && thrown.name === 'AbortError';
}

function fromForeign(error: Error): BacktalkError {
  if (isAbort(error)) return kitErrors.cancelled({}, error);
  // The name that AbortSignal.timeout() gives its reason.
  if (error.name === 'TimeoutError') return kitErrors.deadlineExceeded({}, error);
  const code = systemCodeOf(error);
  if (code !== undefined && awayCodes.has(code)) return kitErrors.unreachable({ reason: code }, error);
  return kitErrors.internal({}, error);
}

function systemCodeOf(error: Error): string | undefined {
  return 'code' in error && typeof error.code === 'string' ? error.code : undefined;
}
