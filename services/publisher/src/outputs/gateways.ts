// The gateways, by their leases: commits the routes on all of them at once, and asks which versions still stream.
import { asBacktalkError, type Clock, type LeaseView, type Trace, type WireSecurity } from '@backtalk/kit';
import { GatewayControlServiceDefinition } from '@backtalk/proto/control';
import type { Routes } from '@backtalk/proto/weights';
import type { StreamsReport } from '../domain/retirement.js';
import type { PublisherEvents } from '../events.js';
import { Peers } from './peers.js';

const askDeadlineMs = 2_000;

export class Gateways {
  private readonly peers: Peers<typeof GatewayControlServiceDefinition>;

  constructor(
    private readonly leases: LeaseView,
    private readonly commitDeadlineMs: number,
    private readonly events: PublisherEvents,
    private readonly clock: Clock,
    wire?: WireSecurity,
  ) {
    this.peers = new Peers(GatewayControlServiceDefinition, wire);
  }

  /** Resolves when every gateway routes so or its time is up. One that is late reads the routes by itself. */
  async commit(routes: Routes, trace?: Trace): Promise<{ milliseconds: number; gateways: number }> {
    const startMs = this.clock.now();
    const addresses = this.addresses();
    const calling = { deadlineMs: this.commitDeadlineMs, ...(trace === undefined ? {} : { trace }) };
    await Promise.all(
      addresses.map(async (address) => {
        try {
          await this.peers.at(address).commit({ routes }, calling);
        } catch (error) {
          this.events.commitFailed(asBacktalkError(error));
        }
      }),
    );
    return { milliseconds: this.clock.now() - startMs, gateways: addresses.length };
  }

  /** What they follow of one policy, and the streams on all versions. */
  reports(policy: string): Promise<StreamsReport[]> {
    const asked = this.addresses().map(async (address) => {
      const asking = new AbortController();
      try {
        const reports = this.peers.at(address).streams({}, { deadlineMs: askDeadlineMs, signal: asking.signal });
        // The first message of the stream is the present.
        for await (const { fence, fences, inFlight } of reports) {
          // A gateway of an earlier release serves one policy, and says one fence.
          const own = Object.keys(fences).length === 0 ? fence : (fences[policy] ?? 0);
          return { fence: own, inFlight: new Map(Object.entries(inFlight)) };
        }
      } catch {
        // It counts as not asked: its versions are kept until its lease or its longest stream is over.
      } finally {
        asking.abort();
      }
      return undefined;
    });
    return Promise.all(asked);
  }

  close(): void {
    this.peers.keep([]);
  }

  private addresses(): string[] {
    const addresses = this.leases.current().flatMap(({ grpcAddress }) => (grpcAddress === '' ? [] : [grpcAddress]));
    this.peers.keep(addresses);
    return addresses;
  }
}
