// What the publisher calls: Commit, which answers once new requests are routed so, and Streams, which tells how many
// answers of each version are in hand.
import { GatewayControlServiceDefinition, type GatewayControlServiceImplementation } from '@backtalk/proto/control';
import { serveGrpc, type Address, type Clock, type GrpcCallFacts, type GrpcServer, type Logger } from '@backtalk/kit';
import { gatewayErrors } from '../errors.js';
import type { Places } from '../domain/places.js';
import type { RouteTable } from '../outputs/route-table.js';

export interface ControlParts {
  readonly routes: RouteTable;
  readonly places: Places;
  readonly clock: Clock;
}

/** Changes within this time are told together. */
const tellEveryMs = 100;

export function serveControl(parts: ControlParts, address: Address, logger: Logger): Promise<GrpcServer> {
  const services = [{ definition: GatewayControlServiceDefinition, implementation: control(parts) }] as const;
  return serveGrpc({ address, services, logger });
}

export function control({ routes, places, clock }: ControlParts): GatewayControlServiceImplementation<GrpcCallFacts> {
  return {
    commit(request) {
      if (request.routes === undefined) throw gatewayErrors.missingParameter({ param: 'routes' });
      return Promise.resolve({ fence: routes.apply(request.routes) });
    },
    async *streams(_request, { signal }) {
      const change = new Change(places);
      try {
        while (!signal.aborted) {
          yield { inFlight: places.byVersion(), fence: routes.fence };
          await change.next(signal);
          await clock.sleep(tellEveryMs, signal);
        }
      } finally {
        change.stop();
      }
    },
  };
}

/** Waits for the next change; one that came while nobody waited is not missed. */
class Change {
  private changed = false;
  private wake: () => void = () => undefined;
  readonly stop: () => void;

  constructor(places: Places) {
    this.stop = places.onChange(() => {
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
