// Turns what the NATS client throws into the house's errors, once, at the edge.
// In: anything thrown and what was being done. Out: a BacktalkError. It retries nothing.
import { ErrorCode, NatsError } from 'nats';
import { asBacktalkError, BacktalkError } from '../errors/backtalk-error.js';
import { brokerErrors } from './errors.js';

/** Numbers by which JetStream names its errors (its errors.json); only those that are acted on. */
const jetStreamCode = {
  streamNotFound: 10059,
  storeFailed: 10077,
  maximumBytes: 10122,
  maximumMessages: 10123,
} as const;

/** What the client says when a connection is down, closing, or a request got no answer. All of them may pass. */
const passing: ReadonlySet<string> = new Set([
  ErrorCode.Timeout,
  ErrorCode.NoResponders,
  ErrorCode.ConnectionClosed,
  ErrorCode.ConnectionDraining,
  ErrorCode.ConnectionRefused,
  ErrorCode.ConnectionTimeout,
  ErrorCode.Disconnect,
  ErrorCode.JetStreamNotEnabled,
  ErrorCode.RequestError,
]);

export interface Doing {
  /** Words for people: "publish turnOpened". */
  readonly doing: string;
  readonly subject?: string;
  readonly stream?: string;
}

export function brokerError(thrown: unknown, { doing, subject, stream }: Doing): BacktalkError {
  if (thrown instanceof BacktalkError) return thrown;
  if (!(thrown instanceof NatsError)) return asBacktalkError(thrown);
  if (thrown.isPermissionError()) return brokerErrors.brokerForbidden({ subject: subject ?? 'unknown' }, thrown);
  const code = thrown.api_error?.err_code;
  if (code === jetStreamCode.streamNotFound) return brokerErrors.streamMissing({ stream: stream ?? 'unknown' }, thrown);
  const isFull =
    code === jetStreamCode.maximumBytes ||
    code === jetStreamCode.maximumMessages ||
    (code === jetStreamCode.storeFailed && thrown.message.includes('maximum'));
  if (isFull) return brokerErrors.streamFull({ stream: stream ?? 'unknown' }, thrown);
  // During an election JetStream answers 503 with a code of its own; it passes like silence does.
  if (passing.has(thrown.code) || thrown.api_error?.code === 503) {
    return brokerErrors.brokerUnavailable({ doing }, thrown);
  }
  return brokerErrors.brokerRequestRejected({ doing, brokerCode: code ?? 0 }, thrown);
}
