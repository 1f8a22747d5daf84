// The start-up that all services share. In: a service's name, its configuration and what it starts on top. Out: a service
// whose health endpoint answers first and says ready last, and whose parts stop in reverse order within one deadline.
import type { Lease } from '@backtalk/proto/weights';
import type { BlobStore } from '../blobs/blob-store.js';
import { type BlobConfig, openBlobStore } from '../blobs/open-blob-store.js';
import { type Broker, connectBroker } from '../broker/connect.js';
import { awaitStreams } from '../broker/streams.js';
import type { LogLevel } from '../config/base-settings.js';
import type { Address } from '../config/setting.js';
import {
  certificateEndsAt,
  type TlsFiles,
  type WireConfig,
  wireSecurity,
  type WireSecurity,
} from '../config/wire-security.js';
import { asBacktalkError } from '../errors/backtalk-error.js';
import { FactReader } from '../facts/reader.js';
import { checkInstallation, type InstallationConfig } from '../installation/check-installation.js';
import { holdLease, leaseAddresses, type LeaseHold } from '../kv/leases.js';
import { Health } from '../telemetry/health.js';
import { createLogger, type Logger } from '../telemetry/logger.js';
import { Metrics } from '../telemetry/metrics.js';
import { type Clock, systemClock, within } from '../time/clock.js';
import { blobStream, bucketNames, buckets, bucketStream } from '../topology/buckets.js';
import type { FactStream } from '../topology/catalogue.js';
import { replayStream } from '../topology/streams.js';
import type { BrokerService } from '../topology/users.js';
import { Lifecycle } from './lifecycle.js';
import type { Service } from './run.js';

/** The settings that every service has. */
export interface ServiceConfig extends InstallationConfig, BlobConfig, WireConfig {
  readonly natsUrl: string;
  readonly natsUser: string;
  readonly natsPassword: string;
  readonly instance: string;
  readonly healthAddress: Address;
  readonly logLevel: LogLevel;
}

export interface ServiceOverrides {
  readonly clock?: Clock;
  readonly logger?: Logger;
  /** Takes an error that no waiting mends; `run` then ends the process. */
  readonly fail?: (error: unknown) => void;
}

/** What a service's own parts are made with. */
export interface ServiceContext<C extends ServiceConfig> {
  readonly name: BrokerService;
  readonly config: C;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly metrics: Metrics;
  readonly health: Health;
  readonly lifecycle: Lifecycle;
  readonly broker: Broker;
  readonly blobs: BlobStore;
  readonly reader: FactReader;
  /** For gRPC and Valkey: how services know each other. */
  readonly wire: WireSecurity;
  readonly fail: (error: unknown) => void;
}

export interface ServiceDefinition<C extends ServiceConfig, P extends string> {
  readonly name: BrokerService;
  readonly config: C;
  readonly overrides: ServiceOverrides;
  /** Streams that the start waits for, beside the buckets that the service reads. */
  readonly streams: readonly FactStream[];
  readonly stopWithinMs: number;
  /** Starts the service's own parts, adding each to the lifecycle; resolves with the ports that it has bound. */
  readonly start: (context: ServiceContext<C>) => Promise<Readonly<Record<P, number>>>;
}

export interface ServiceWithPorts<P extends string = never> extends Service {
  /** Ports that are really bound: `health` once the start has begun, the others once it is done. The configured ones may be 0. */
  readonly ports: Readonly<Record<P | 'health', number>>;
}

/** How long a stop waits for what is being started: it is cut by the end of the process after that. */
const startEndsWithinMs = 1_000;

export function createService<C extends ServiceConfig, P extends string = never>(
  definition: ServiceDefinition<C, P>,
): ServiceWithPorts<P> {
  const { name, config, overrides, stopWithinMs } = definition;
  const {
    clock = systemClock,
    fail = (error) =>
      // Started without a process around it: the error is thrown uncaught.
      queueMicrotask(() => {
        throw asBacktalkError(error);
      }),
  } = overrides;
  const logger = overrides.logger ?? createLogger({ service: name, level: config.logLevel });
  const metrics = new Metrics(name);
  const lifecycle = new Lifecycle(logger);
  const health = new Health({ address: config.healthAddress, metrics, logger });
  const own: { ports: Partial<Record<P, number>> } = { ports: {} };
  let state: 'starting' | 'started' | 'stopping' = 'starting';
  health.check('service', () => state === 'started' || `the service is ${state}`);

  const stopping = new AbortController();
  let starting: Promise<void> = Promise.resolve();
  const start = async (): Promise<void> => {
    const wire = wireSecurity(config);
    if (wire.tls !== undefined) tellExpiry(metrics, wire.tls);
    await health.start();
    lifecycle.add('health', () => health.stop());
    const broker = await brokerWithStreams(definition, { clock, logger, health, lifecycle, wire }, stopping.signal);
    await checkInstallation(config, broker, wire.tls);
    const blobs = await openBlobStore(config, broker);
    const reader = new FactReader(broker, blobs);
    const shared = { name, config, clock, logger, metrics, health, lifecycle, wire };
    stopping.signal.throwIfAborted();
    own.ports = await definition.start({ ...shared, broker, blobs, reader, fail });
    // A stop that came meanwhile stands.
    if (state === 'starting') state = 'started';
  };
  return {
    get ports() {
      return { ...own.ports, health: health.port } as Readonly<Record<P | 'health', number>>;
    },
    start: () => {
      starting = start();
      return starting;
    },
    stop: async () => {
      state = 'stopping';
      stopping.abort();
      // A start that failed is known to its caller.
      await within(systemClock, startEndsWithinMs, starting).catch(() => undefined);
      await lifecycle.stopAll(stopWithinMs);
    },
  };
}

/** Nothing reads the files again: who renews them starts the process again, and is warned in time by this. */
function tellExpiry(metrics: Metrics, tls: TlsFiles): void {
  const help = 'When the certificate that was read at the start ends, in seconds since 1970.';
  metrics.gauge('certificate_expiry_timestamp_seconds', help).set(certificateEndsAt(tls));
}

/** Waits as long as it takes: in a cluster everything starts at once, and the broker's volume may come last. */
async function brokerWithStreams<C extends ServiceConfig, P extends string>(
  { name, config, streams }: ServiceDefinition<C, P>,
  {
    clock,
    logger,
    health,
    lifecycle,
    wire,
  }: Pick<ServiceContext<C>, 'clock' | 'logger' | 'health' | 'lifecycle' | 'wire'>,
  signal: AbortSignal,
): Promise<Broker> {
  let connected: Broker | undefined = undefined as Broker | undefined;
  let missing: string | undefined = 'the streams';
  health.check('broker', () => connected?.status() === 'up' || 'the broker cannot be reached');
  health.check('streams', () => missing === undefined || `${missing} cannot be seen on the broker`);
  const { natsUrl: url, natsUser: user, natsPassword: password, instance, blobStore } = config;
  const connectTimeoutMs = Number.POSITIVE_INFINITY;
  const waiting = { connectTimeoutMs, signal, clock, ...(wire.tls === undefined ? {} : { tls: wire.tls }) };
  const broker = await connectBroker({ ...waiting, url, user, password, name: `${name} ${instance}`, logger });
  connected = broker;
  lifecycle.add('broker', () => broker.close());
  const read = bucketNames.filter((bucket) => buckets[bucket].readBy.includes(name)).map(bucketStream);
  const wanted = [...streams, replayStream, ...read, ...(blobStore.kind === 'jetstream' ? [blobStream] : [])];
  await awaitStreams(broker, wanted, {
    clock,
    signal,
    onMissing: (stream) => {
      missing = stream;
    },
  });
  missing = undefined;
  return broker;
}

interface LeasedConfig extends ServiceConfig {
  readonly grpcAddress: Address;
  /** `<host>:<port>`; empty where others find the service under the address that it listens on. */
  readonly grpcAdvertised: string;
}

/**
 * Holds the service's lease, by which others find its gRPC server, until the service stops.
 * @param engine is asked anew at each renewal; for loaders
 */
export function serviceLease<C extends LeasedConfig>(
  { name, config, broker, health, lifecycle, logger }: ServiceContext<C>,
  grpcPort: number,
  engine: () => Lease['engine'] = () => undefined,
): LeaseHold {
  const addresses = leaseAddresses(config, { grpc: grpcPort, health: health.port });
  const held = holdLease({
    broker,
    lease: () => ({ kind: name, instance: config.instance, ...addresses, engine: engine() }),
  });
  lifecycle.add('lease', () =>
    held.release().catch((error: unknown) => logger.warn('lease_not_released', { error: asBacktalkError(error) })),
  );
  return held;
}
