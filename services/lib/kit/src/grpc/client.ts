// Calls other services. In: a service definition, an address, the caller's name. Out: a client whose every call names a
// deadline, carries caller and trace, and fails with a BacktalkError. It never waits for ever and never retries by itself.
import { createChannel, createClientFactory, type Client, type CompatServiceDefinition } from 'nice-grpc';
import { Metadata, type CallOptions, type ClientMiddleware } from 'nice-grpc-common';
import { deadlineMiddleware, type DeadlineOptions } from 'nice-grpc-client-middleware-deadline';
import { childTrace, newTrace, type Trace } from '../telemetry/index.js';
import { callerEntry, channelSettings, traceEntry } from './channel-settings.js';
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
  { caller }: { readonly caller: string },
): GrpcClient<D> {
  const channel = createChannel(address, undefined, channelSettings);
  const methods = createClientFactory()
    .use(deadlineMiddleware)
    .use(contextMiddleware(caller))
    .create(definition, channel);
  const close = (): void => {
    channel.close();
  };
  return { ...methods, close } as unknown as GrpcClient<D>;
}

function contextMiddleware(caller: string): ClientMiddleware<Partial<GrpcCallOptions>, DeadlineOptions> {
  return async function* withContext(call, { deadlineMs, trace, ...options }) {
    if (deadlineMs === undefined) throw grpcErrors.deadlineMissing({ method: call.method.path });
    let trailer: Metadata | undefined;
    const nextOptions: CallOptions & DeadlineOptions = {
      ...options,
      deadline: Math.min(deadlineMs, deadlineMsMax),
      metadata: Metadata({
        [callerEntry]: caller,
        [traceEntry]: (trace === undefined ? newTrace() : childTrace(trace)).traceparent,
      }),
      onTrailer: (received) => {
        trailer = received;
      },
    };
    try {
      return yield* call.next(call.request, nextOptions);
    } catch (error) {
      throw fromClientError(error, trailer);
    }
  };
}
