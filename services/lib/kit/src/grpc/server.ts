// Answers other services. In: an address and implementations. Out: a server that says who called and in which trace,
// turns errors into statuses that keep their code, logs what failed, and drains before it cuts.
import { createHash, timingSafeEqual } from 'node:crypto';
import { ServerCredentials } from '@grpc/grpc-js';
import { createServer, type CompatServiceDefinition, type ServiceImplementation } from 'nice-grpc';
import { ServerError, type ServerMiddleware } from 'nice-grpc-common';
import type { Address } from '../config/setting.js';
import { type CallTokens, openWire, type WireSecurity } from '../config/wire-security.js';
import { clip } from '../conversation/clip.js';
import { asBacktalkError, isAbort, kitErrors } from '../errors/backtalk-error.js';
import type { Logger } from '../telemetry/logger.js';
import { isTracing, startSpan } from '../telemetry/spans.js';
import { type Trace, traceFrom } from '../telemetry/trace.js';
import { type Clock, systemClock } from '../time/clock.js';
import { callPairs, calls, pairsFor, tokenVariable } from '../topology/calls.js';
import { callerEntry, channelSettings, tokenEntry, traceEntry } from './client.js';
import { grpcErrors, toServerError } from './grpc-errors.js';

/** What every implementation finds in its call context, beside nice-grpc's own. */
export interface GrpcCallFacts {
  readonly caller: string;
  readonly trace: Trace;
}

interface GrpcService<D extends CompatServiceDefinition> {
  readonly definition: D;
  readonly implementation: ServiceImplementation<D, GrpcCallFacts>;
}

interface ServeGrpcOptions<D extends readonly CompatServiceDefinition[]> {
  readonly address: Address;
  readonly services: { readonly [K in keyof D]: GrpcService<D[K]> };
  readonly logger: Logger;
  /** Left out, all who give a caller's name may call, in clear. */
  readonly wire?: WireSecurity;
  readonly clock?: Clock;
}

export interface GrpcServer {
  readonly port: number;
  readonly address: Address;
  /** Takes no new calls, waits for those that run, and after `drainMs` cancels what is left. */
  stop(drainMs?: number): Promise<void>;
}

const drainMsDefault = 5_000;

export async function serveGrpc<const D extends readonly CompatServiceDefinition[]>(
  options: ServeGrpcOptions<D>,
): Promise<GrpcServer> {
  const { address, services, logger, wire = openWire, clock = systemClock } = options;
  const server = createServer(channelSettings).use(callFacts).use(errorsOut(logger)).use(callersOnly(wire.tokens));
  for (const { definition, implementation } of services) server.add(definition, implementation);
  const { host } = address;
  const listenAddress = `${host.includes(':') ? `[${host}]` : host}:${address.port}`;
  const port = await server.listen(listenAddress, credentialsOf(wire)).catch((error: unknown) => {
    throw kitErrors.addressInUse({ address: listenAddress, reason: 'the port cannot be bound' }, error);
  });
  return {
    port,
    address: { host, port },
    stop: (drainMs = drainMsDefault) =>
      new Promise((resolve, reject) => {
        const cancelForce = clock.timer(drainMs, () => {
          server.forceShutdown();
          // Connections whose other end does not close, as one that never said a word, would be waited for without end.
          resolve();
        });
        server.shutdown().finally(cancelForce).then(resolve, reject);
      }),
  };
}

/** A caller without a certificate of the same authority does not come as far as a call. */
function credentialsOf({ tls }: WireSecurity): ServerCredentials {
  if (tls === undefined) return ServerCredentials.createInsecure();
  return ServerCredentials.createSsl(tls.ca, [{ private_key: tls.key, cert_chain: tls.cert }], true);
}

/** Who the caller says it is must stand in the table beside the method, and it must have the secret of the two. */
function callersOnly(tokens: CallTokens): ServerMiddleware<object, GrpcCallFacts> {
  const digest = (text: string): Buffer => createHash('sha256').update(text).digest();
  const wanted = new Map(callPairs.map((pair) => [pair, tokens[pair] && digest(`Bearer ${tokens[pair]}`)] as const));
  return async function* onlyCallers(call, context) {
    const { path: method } = call.method;
    const { caller } = context;
    const allowed = pairsFor(method);
    const pair = allowed.find((known) => calls[known].caller === caller);
    if (pair === undefined) {
      const callers = allowed.map((known) => calls[known].caller).join(', ');
      throw grpcErrors.callerForbidden({ method, caller, callers: callers === '' ? 'no service' : callers });
    }
    // Digests are of one length, and comparing them takes the same time wherever they differ.
    const token = wanted.get(pair);
    if (token && !timingSafeEqual(digest(context.metadata.get(tokenEntry) ?? ''), token))
      throw grpcErrors.callerUnknown({ method, caller, variable: tokenVariable(pair) });
    return yield* call.next(call.request, context);
  };
}

/** What a stranger calls itself is written down no longer than any name that is known. */
const callerCharactersMax = 64;

const callFacts: ServerMiddleware<GrpcCallFacts> = async function* callFacts(call, context) {
  const caller = clip(context.metadata.get(callerEntry) ?? 'unknown', callerCharactersMax);
  const parent = traceFrom(context.metadata.get(traceEntry));
  if (!isTracing()) return yield* call.next(call.request, Object.assign(context, { caller, trace: parent }));
  const span = startSpan(call.method.path, { kind: 'server', parent, attributes: { 'backtalk.caller': caller } });
  try {
    const answer = yield* call.next(call.request, Object.assign(context, { caller, trace: span.trace }));
    span.end();
    return answer;
  } catch (error) {
    span.end(asBacktalkError(error).code);
    throw error;
  }
};

function errorsOut(logger: Logger): ServerMiddleware<object, GrpcCallFacts> {
  return async function* translateErrors(call, context) {
    try {
      return yield* call.next(call.request, context);
    } catch (thrown) {
      // nice-grpc itself answers these two; an abort means that the caller has gone.
      if (isAbort(thrown) || thrown instanceof ServerError) throw thrown;
      const error = asBacktalkError(thrown);
      const { caller, trace } = context;
      logger.warn('grpc_call_failed', { method: call.method.path, caller, traceId: trace.traceId, error });
      throw toServerError(error, context.trailer);
    }
  };
}
