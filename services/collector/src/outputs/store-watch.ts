// How full are the broker and Valkey? This process uses both, and looks at them for all. In: connections. Out: gauges. It asks
// again and again until it is stopped; a store that does not answer is said to be away.
import { blobStream, brokerRoom, namedPayloadBytes, type Broker, type Clock } from '@backtalk/kit';
import type { Redis } from 'ioredis';
import type { Events } from '../events.js';

/** Those that refuse what is new when they are full, and that this service may look at. */
const streams = ['TURNS', 'WEIGHTS', blobStream] as const;
const lookEveryMs = 15_000;
/** After a look in which one did not answer: a single late answer, or a connection that is being made, is none that is away. */
const lookAgainMs = 1_000;

interface StoreOptions {
  readonly broker: Broker;
  readonly valkey: Redis;
  /** With commas between several; empty: the account alone is asked. */
  readonly natsMonitorUrl: string;
  readonly events: Events;
  readonly clock: Clock;
  readonly everyMs?: number;
}

export class StoreWatch {
  private cancel: (() => void) | undefined;
  private running: Promise<void> = Promise.resolve();

  constructor(private readonly options: StoreOptions) {}

  start(afterMs = 0): void {
    const { clock, everyMs = lookEveryMs } = this.options;
    this.cancel = clock.timer(afterMs, () => {
      this.running = this.look().then((areUp) => {
        if (this.cancel !== undefined) this.start(areUp ? everyMs : Math.min(lookAgainMs, everyMs));
      });
    });
  }

  async stop(): Promise<void> {
    this.cancel?.();
    this.cancel = undefined;
    await this.running;
  }

  /** Whether all answered. */
  private async look(): Promise<boolean> {
    const { events } = this.options;
    const [broker, valkey] = await Promise.allSettled([this.lookAtBroker(), this.lookAtValkey()]);
    events.storeLooked('broker', broker.status === 'fulfilled');
    events.storeLooked('valkey', valkey.status === 'fulfilled');
    return broker.status === 'fulfilled' && valkey.status === 'fulfilled';
  }

  private async lookAtBroker(): Promise<void> {
    const { broker, events, natsMonitorUrl } = this.options;
    for (const stream of streams) {
      const { state, config } = await broker.jsm.streams.info(stream);
      const beside = stream === 'TURNS' ? await namedPayloadBytes(broker) : 0;
      events.streamLooked(stream, {
        bytes: state.bytes + beside,
        messages: state.messages,
        bytesMax: config.max_bytes,
      });
    }
    for (const room of await brokerRoom(broker, natsMonitorUrl)) events.brokerLooked(room);
  }

  private async lookAtValkey(): Promise<void> {
    const { valkey, events } = this.options;
    const info = await valkey.info('memory');
    const used = /^used_memory:(\d+)/m.exec(info)?.[1] ?? 0;
    const max = /^maxmemory:(\d+)/m.exec(info)?.[1] ?? 0;
    events.valkeyLooked(Number(used), Number(max));
  }
}
