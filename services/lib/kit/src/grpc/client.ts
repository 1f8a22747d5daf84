// Calls other services. In: a service definition, an address, the caller's name. Out: a client whose every call names a
// deadline, carries caller and trace, and fails with a BacktalkError. Every wait is bounded, and nothing is retried here.
import {
  ChannelCredentials,
  createChannel,
  createClientFactory,
  type Client,
  type CompatServiceDefinition,
} from 'nice-grpc';
import { Metadata, type CallOptions, type ClientMiddleware } from 'nice-grpc-common';
import { deadlineMiddleware, type DeadlineOptions } from 'nice-grpc-client-middleware-deadline';
import type { ChannelOptions } from '@grpc/grpc-js';
import { type CallTokens, openWire, type WireSecurity } from '../config/wire-security.js';
import { asBacktalkError } from '../errors/backtalk-error.js';
import { isTracing, startSpan } from '../telemetry/spans.js';
import { childTrace, type Trace, unfollowedTrace } from '../telemetry/trace.js';
import { calls, type GrpcCaller, pairsFor } from '../topology/calls.js';
import { fromClientError, grpcErrors } from './grpc-errors.js';

export interface GrpcCallOptions {
  /** For the whole call, streams included. */
  readonly deadlineMs: number;
  readonly trace?: Trace;
  readonly signal?: AbortSignal;
}

type Method<M> = M extends (request: infer Q, options?: infer _O) => infer R
  ? (request: Q, options: GrpcCallOptions) => R
  : never;

export type GrpcClient<D extends CompatServiceDefinition> = {
  readonly [K in keyof Client<D>]: Method<Client<D>[K]>;
} & { readonly close: () => void };

/** Node fires longer timers at once. */
const deadlineMsMax = 2 ** 31 - 1;

export function grpcClient<D extends CompatServiceDefinition>(
  definition: D,
  address: string,
  { caller, wire = openWire }: { readonly caller: GrpcCaller; readonly wire?: WireSecurity },
): GrpcClient<D> {
  const { tls } = wire;
  const credentials =
    tls === undefined
      ? undefined
      : ChannelCredentials.createSsl(tls.ca, tls.key, tls.cert, { rejectUnauthorized: true });
  const channel = createChannel(address, credentials, { ...channelSettings, ...(tls === undefined ? {} : nameOfAll) });
  const methods = createClientFactory()
    .use(deadlineMiddleware)
    .use(contextMiddleware(caller, wire.tokens))
    .create(definition, channel);
  return { ...methods, close: () => channel.close() } as unknown as GrpcClient<D>;
}

function contextMiddleware(
  caller: string,
  tokens: CallTokens,
): ClientMiddleware<Partial<GrpcCallOptions>, DeadlineOptions> {
  return async function* withContext(call, { deadlineMs, trace, ...options }) {
    const { path } = call.method;
    if (deadlineMs === undefined) throw grpcErrors.deadlineMissing({ method: path });
    const pair = pairsFor(path).find((known) => calls[known].caller === caller);
    const token = (pair && tokens[pair]) ?? '';
    let trailer: Metadata | undefined;
    // Only calls that belong to a request's trace are worth a span.
    const span = trace === undefined || !isTracing() ? undefined : startSpan(path, { kind: 'client', parent: trace });
    const nextOptions: CallOptions & DeadlineOptions = {
      ...options,
      deadline: Math.min(deadlineMs, deadlineMsMax),
      metadata: Metadata({
        [callerEntry]: caller,
        ...(token === '' ? {} : { [tokenEntry]: `Bearer ${token}` }),
        [traceEntry]: (span?.trace ?? (trace === undefined ? unfollowedTrace() : childTrace(trace))).traceparent,
      }),
      onTrailer: (received) => {
        trailer = received;
      },
    };
    try {
      const answer = yield* call.next(call.request, nextOptions);
      span?.end();
      return answer;
    } catch (error) {
      const failure = fromClientError(error, trailer);
      span?.end(asBacktalkError(failure).code);
      throw failure;
    }
  };
}

/** The name that certificates of services carry: where they are, leases say, by addresses that change. */
const nameOfAll: ChannelOptions = { 'grpc.ssl_target_name_override': 'backtalk' };

/** A batch of samples fits; anything larger goes through the blob store. */
const messageBytesMax = 64 * 1024 * 1024;

export const channelSettings: ChannelOptions = {
  'grpc.max_receive_message_length': messageBytesMax,
  'grpc.max_send_message_length': messageBytesMax,
  // A peer that was stopped or cut off is noticed within 15 s.
  'grpc.keepalive_time_ms': 10_000,
  'grpc.keepalive_timeout_ms': 5_000,
  'grpc.keepalive_permit_without_calls': 1,
  'grpc.initial_reconnect_backoff_ms': 250,
  'grpc.max_reconnect_backoff_ms': 2_000,
};

export const callerEntry = 'backtalk-caller';
export const traceEntry = 'traceparent';
export const tokenEntry = 'authorization';
