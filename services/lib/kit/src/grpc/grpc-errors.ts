// How an error crosses a gRPC call. On the way out a BacktalkError becomes a status and three trailer entries; on the
// way in they become the same BacktalkError again. Peers that know nothing of Backtalk are judged by their status.
import { ClientError, ServerError, Status, type Metadata } from 'nice-grpc-common';
import { asBacktalkError, BacktalkError, defineErrors, isAbort, kitErrors } from '../errors/backtalk-error.js';

const codeEntry = 'backtalk-code';
const retryEntry = 'backtalk-retry';
const statusEntry = 'backtalk-status';

export const grpcErrors = defineErrors('kit', {
  deadlineMissing: {
    code: 'deadline_missing',
    retry: 'stop',
    message: (p: { method: string }) => `The call ${p.method} was made without a deadline.`,
  },
  peerUnreachable: {
    code: 'peer_unreachable',
    status: 503,
    retry: 'later',
    message: (p: { method: string }) => `No service answers ${p.method}.`,
  },
  peerOverloaded: {
    code: 'peer_overloaded',
    status: 503,
    retry: 'later',
    message: (p: { method: string }) => `The peer has no room for ${p.method} now.`,
  },
  peerRefused: {
    code: 'peer_refused',
    status: 502,
    retry: 'never',
    message: (p: { method: string; status: string }) => `The peer refused ${p.method} (${p.status}).`,
  },
  callerUnknown: {
    code: 'caller_unknown',
    status: 401,
    retry: 'later',
    message: (p: { method: string; caller?: string; variable?: string }) =>
      `${p.caller ?? 'The caller'} has not the secret of ${p.method}: give both ends the same ${p.variable ?? 'token'}.`,
  },
  callerForbidden: {
    code: 'caller_forbidden',
    status: 403,
    // Whether it may is a matter of releases, which may differ while they are changed.
    retry: 'later',
    message: (p: { method: string; caller: string; callers: string }) =>
      `'${p.caller}' may not call ${p.method}, which is for ${p.callers}.`,
  },
  peerFailed: {
    code: 'peer_failed',
    status: 502,
    retry: 'later',
    message: (p: { method: string; status: string }) => `The peer failed in ${p.method} (${p.status}).`,
  },
});

const statusOfHttp: ReadonlyMap<number, Status> = new Map([
  [400, Status.INVALID_ARGUMENT],
  [401, Status.UNAUTHENTICATED],
  [403, Status.PERMISSION_DENIED],
  [404, Status.NOT_FOUND],
  [409, Status.ABORTED],
  [429, Status.RESOURCE_EXHAUSTED],
  [499, Status.CANCELLED],
  [503, Status.UNAVAILABLE],
  [504, Status.DEADLINE_EXCEEDED],
]);

/** For the server: fills the trailer and gives the error to throw. */
export function toServerError(error: BacktalkError, trailer: Metadata): ServerError {
  trailer.set(codeEntry, error.code);
  trailer.set(retryEntry, error.retry);
  if (error.status !== undefined) trailer.set(statusEntry, String(error.status));
  const fallback = error.retry === 'later' ? Status.INTERNAL : Status.FAILED_PRECONDITION;
  return new ServerError(statusOfHttp.get(error.status ?? 0) ?? fallback, error.message);
}

/** For the client: the peer's own error where the trailer names one, else one that follows from the status. */
export function fromClientError(thrown: unknown, trailer: Metadata | undefined): BacktalkError {
  if (isAbort(thrown)) return kitErrors.cancelled({}, thrown);
  if (!(thrown instanceof ClientError)) return asBacktalkError(thrown);
  return fromTrailer(thrown, trailer) ?? fromStatus(thrown);
}

function fromTrailer(error: ClientError, trailer: Metadata | undefined): BacktalkError | undefined {
  const code = trailer?.get(codeEntry);
  const peerRetry = trailer?.get(retryEntry);
  // A peer's `stop` stops the peer. Its caller may come back when the peer has been mended.
  const retry = peerRetry === 'stop' ? 'later' : peerRetry;
  if (code === undefined || (retry !== 'later' && retry !== 'never')) return undefined;
  const status = trailer?.get(statusEntry);
  return new BacktalkError({
    code,
    retry,
    message: error.details,
    status: status === undefined ? undefined : Number(status),
    detail: { method: error.path },
    cause: error,
  });
}

function fromStatus(error: ClientError): BacktalkError {
  const params = { method: error.path, status: Status[error.code] };
  switch (error.code) {
    case Status.UNAVAILABLE:
      return grpcErrors.peerUnreachable(params, error);
    case Status.RESOURCE_EXHAUSTED:
      return grpcErrors.peerOverloaded(params, error);
    case Status.UNAUTHENTICATED:
      return grpcErrors.callerUnknown(params, error);
    case Status.DEADLINE_EXCEEDED:
      return kitErrors.deadlineExceeded({ method: error.path }, error);
    case Status.CANCELLED:
      return kitErrors.cancelled({ method: error.path }, error);
    case Status.INTERNAL:
    case Status.UNKNOWN:
    case Status.DATA_LOSS:
    case Status.ABORTED:
      return grpcErrors.peerFailed(params, error);
    default:
      return grpcErrors.peerRefused(params, error);
  }
}
