// What the publisher calls: Commit, which answers once new requests are routed so, and Streams, which reports how
// many answers of each version are in flight.
import { GatewayControlServiceDefinition, type GatewayControlServiceImplementation } from '@backtalk/proto/control';
import { type Address, type Clock, type Logger, type WireSecurity } from '@backtalk/kit';
import { serveGrpc, type GrpcCallFacts, type GrpcServer } from '@backtalk/kit/grpc';
import { gatewayErrors } from '../errors.js';
import type { RequestSlots } from '../domain/request-slots.js';
import type { Serving } from './parts.js';

/** Changes within this time are reported together. */
const reportEveryMs = 100;

interface ControlOptions {
  readonly clock: Clock;
  readonly address: Address;
  readonly logger: Logger;
  readonly wire: WireSecurity;
}

export function serveControl(
  { routes, slots }: Pick<Serving, 'routes' | 'slots'>,
  fenceMax: () => Promise<number>,
  { clock, ...server }: ControlOptions,
): Promise<GrpcServer> {
  const implementation: GatewayControlServiceImplementation<GrpcCallFacts> = {
    async commit(request) {
      if (request.routes === undefined) throw gatewayErrors.missingParameter({ param: 'routes' });
      const { policy, fence } = request.routes;
      // One that no publisher can have reached would shut out every later one.
      if (fence > (routes.of(policy)?.fence ?? 0) && fence > (await fenceMax()))
        throw gatewayErrors.fenceUnknown({ fence });
      return { fence: routes.apply(request.routes) };
    },
    async *streams(_request, { signal }) {
      const change = new Change(slots);
      try {
        while (!signal.aborted) {
          yield { inFlight: slots.byVersion(), fence: routes.fence, fences: routes.fences };
          await change.next(signal);
          await clock.sleep(reportEveryMs, signal);
        }
      } finally {
        change.stop();
      }
    },
  };
  return serveGrpc({ ...server, services: [{ definition: GatewayControlServiceDefinition, implementation }] });
}

/** Waits for the next change; one that came before the wait is not missed. */
class Change {
  private changed = false;
  private wake: () => void = () => undefined;
  readonly stop: () => void;

  constructor(slots: RequestSlots) {
    this.stop = slots.onChange(() => {
      this.changed = true;
      this.wake();
    });
  }

  async next(signal: AbortSignal): Promise<void> {
    if (!this.changed && !signal.aborted) {
      await new Promise<void>((resolve) => {
        this.wake = resolve;
        signal.addEventListener('abort', () => resolve(), { once: true });
      });
    }
    this.changed = false;
  }
}
