// What tests of consumers stand on: a real broker, facts of a user of each test's own, a durable consumer of its own.
import { SessionEnded } from '@backtalk/proto/facts';
import type { Broker } from '../broker/connect.js';
import { consumeFacts, type ConsumeOptions, type FactConsumer } from '../facts/consumer.js';
import type { FactHandler } from '../facts/delivery.js';
import { FactPublisher } from '../facts/publisher.js';
import { newId } from '../identity/ids.js';
import { Metrics } from '../telemetry/metrics.js';
import { startNats, type TestNats } from './nats-server.js';
import { silentLogger } from './silent-logger.js';

export interface Place {
  readonly user: string;
  readonly suffix: string;
}

const placesMax = 30;

export class ConsumerRig {
  private places = 0;

  private constructor(
    readonly nats: TestNats,
    readonly gateway: Broker,
    readonly collector: Broker,
  ) {}

  static async start(): Promise<ConsumerRig> {
    const durableSuffixes = Array.from({ length: placesMax }, (_, index) => `t${index}`);
    const nats = await startNats({ durableSuffixes });
    return new ConsumerRig(nats, await nats.connect('gateway'), await nats.connect('collector'));
  }

  place(): Place {
    this.places += 1;
    return { user: newId(), suffix: `t${this.places}` };
  }

  /** A consumer of the place's ended sessions. */
  consumer(
    { user, suffix }: Place,
    sessionEnded: FactHandler<'sessionEnded'>,
    more: Partial<ConsumeOptions<'sessionEnded'>> = {},
  ): FactConsumer<'sessionEnded'> {
    return consumeFacts({
      broker: this.collector,
      service: 'collector',
      facts: ['sessionEnded'],
      handlers: { sessionEnded },
      filter: { sessionEnded: { user } },
      durableSuffix: suffix,
      concurrency: 4,
      // Longer than a machine that is busy holds a process up: that is no failed delivery.
      ackWaitMs: 20_000,
      logger: silentLogger,
      metrics: new Metrics('test'),
      backOff: { firstMs: 10, mostMs: 50 },
      ...more,
    });
  }

  async publish({ user }: Place, count: number): Promise<string[]> {
    const publisher = new FactPublisher(this.gateway);
    const facts = Array.from({ length: count }, () => endedSession(user));
    for (const fact of facts) await publisher.publish('sessionEnded', fact);
    return facts.map((fact) => fact.session);
  }

  /** Counts the requests for facts that consumers of the place send from now on. */
  async countRequests({ suffix }: Place): Promise<() => number> {
    const admin = await this.nats.connect('admin');
    const subject = `$JS.API.CONSUMER.MSG.NEXT.TURNS.collector_sessionEnded_${suffix}`;
    const subscription = admin.nc.subscribe(subject, { callback: () => undefined });
    await admin.nc.flush();
    return () => subscription.getReceived();
  }

  /** Resolves when so many signs of life were sent: each fact in flight sends three in an ack wait. */
  async signsOfLife({ suffix }: Place, count: number): Promise<void> {
    const admin = await this.nats.connect('admin');
    const subject = `$JS.ACK.TURNS.collector_sessionEnded_${suffix}.>`;
    let seen = 0;
    for await (const sign of admin.nc.subscribe(subject)) {
      if (sign.string() === '+WPI') seen += 1;
      if (seen === count) return;
    }
  }
}

export function endedSession(user: string): SessionEnded {
  return SessionEnded.fromPartial({ session: newId(), tenant: 'acme', user });
}
