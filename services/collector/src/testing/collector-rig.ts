// A real broker and a real Valkey, a collector between them, and a user of each test's own.
import { FactPublisher, FactReader, type Broker, type Service, type ServiceOverrides } from '@backtalk/kit';
import {
  haveSettledAll,
  startNats,
  startValkey,
  TemporaryDirectory,
  until,
  type TestNats,
  type TestValkey,
} from '@backtalk/kit/testing';
import { Redis } from 'ioredis';
import { createCollector, type CollectorConfig } from '../service.js';
import { configFor } from './turns.js';

interface Log {
  readonly nats: TestNats;
  readonly broker: Broker;
  readonly gateway: FactPublisher;
  readonly reader: FactReader;
}

export class CollectorRig {
  /** Of this test. */
  user = '';
  private users = 0;
  private readonly blobs = new TemporaryDirectory('blobs');
  private collector: Service | undefined;

  private constructor(
    private log: Log,
    readonly valkey: TestValkey,
    /** What the collector keeps in Valkey. */
    readonly index: Redis,
  ) {}

  static async start(): Promise<CollectorRig> {
    const [log, valkey] = await Promise.all([newLog(), startValkey()]);
    return new CollectorRig(log, valkey, new Redis(valkey.url));
  }

  async stop(): Promise<void> {
    await this.end();
    this.index.disconnect();
    await Promise.all([this.log.nats.stop(), this.valkey.stop()]);
    this.blobs.remove();
  }

  get broker(): Broker {
    return this.log.broker;
  }

  get gateway(): FactPublisher {
    return this.log.gateway;
  }

  get reader(): FactReader {
    return this.log.reader;
  }

  nextUser(): string {
    this.users += 1;
    this.user = `user${String(this.users)}`;
    return this.user;
  }

  /** In place of the one before. */
  async begin(settings: Partial<CollectorConfig> = {}, overrides: ServiceOverrides = {}): Promise<void> {
    await this.end();
    this.collector = createCollector({ ...configFor(this.log.nats, this.valkey, this.blobs), ...settings }, overrides);
    await this.collector.start();
  }

  async end(): Promise<void> {
    const { collector } = this;
    this.collector = undefined;
    await collector?.stop();
  }

  /** A broker that has stored nothing yet, and an empty index. */
  async renewLog(): Promise<void> {
    await this.log.nats.stop();
    this.log = await newLog();
    await this.valkey.flush();
  }

  async untilTaken(): Promise<void> {
    const names = ['collector_turnOpened', 'collector_turnCompleted', 'collector_turnWithheld'];
    await until(() => haveSettledAll(this.broker, 'TURNS', names), { what: 'All facts are taken' });
  }
}

async function newLog(): Promise<Log> {
  const nats = await startNats();
  const broker = await nats.connect('admin');
  return { nats, broker, gateway: new FactPublisher(await nats.connect('gateway')), reader: new FactReader(broker) };
}
