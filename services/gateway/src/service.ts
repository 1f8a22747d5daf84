// The gateway's composition root.
//
// In: its configuration. Out: a service that starts from what the broker holds (routes, leases, keys) and stops in
// reverse order.
import {
  asBacktalkError,
  checkInstallation,
  connectBroker,
  createLogger,
  FactPublisher,
  FactReader,
  Health,
  holdLease,
  leaseAddresses,
  jsonCodec,
  keyGrant,
  kvBucket,
  Lifecycle,
  Metrics,
  openBlobStore,
  systemClock,
  watchLeases,
  type Broker,
  type Clock,
  type Logger,
  type Service,
} from '@backtalk/kit';
import { Routes } from '@backtalk/proto/weights';
import type { GatewayConfig } from './config.js';
import { Callers } from './domain/caller.js';
import { Places } from './domain/places.js';
import { createEvents, type GatewayEvents } from './events.js';
import { serveControl } from './inputs/control.js';
import { HttpDoor } from './inputs/http.js';
import type { Parts } from './inputs/parts.js';
import { readyChecks } from './inputs/ready.js';
import { Afterwards } from './outputs/afterwards.js';
import { AnswerIndex } from './outputs/answer-index.js';
import { encodeConversation } from './outputs/deflate.js';
import { EngineFleet } from './outputs/engine-fleet.js';
import { KeyRing, keysInBucket, keysInFile } from './outputs/key-ring.js';
import { MinuteCounts } from './outputs/minute-counts.js';
import { RouteTable } from './outputs/route-table.js';
import { Spool } from './outputs/spool.js';
import { SpoolDrain } from './outputs/spool-drain.js';
import { TurnStore } from './outputs/turn-store.js';
import { Valkey } from './outputs/valkey.js';

export interface GatewayOverrides {
  readonly logger?: Logger;
  readonly clock?: Clock;
}

export interface Gateway extends Service {
  /** Ports that are really bound, once started: the configured ones may be 0. */
  readonly ports: { http: number; grpc: number; health: number };
}

/** What every step of the start is given. */
interface Building {
  readonly config: GatewayConfig;
  readonly logger: Logger;
  readonly clock: Clock;
  readonly events: GatewayEvents;
  readonly lifecycle: Lifecycle;
  readonly health: Health;
}

/** Beyond the time for answers in hand: spool, broker, ports. */
const stopMarginMs = 5_000;

export function createGateway(config: GatewayConfig, overrides: GatewayOverrides = {}): Gateway {
  const logger = overrides.logger ?? createLogger({ service: 'gateway', level: config.logLevel });
  const clock = overrides.clock ?? systemClock;
  const metrics = new Metrics('gateway');
  const lifecycle = new Lifecycle(logger);
  const health = new Health({ address: config.healthAddress, metrics, logger });
  const building = { config, logger, clock, lifecycle, health, events: createEvents(logger, metrics) };
  const ports = { http: 0, grpc: 0, health: 0 };
  return {
    ports,
    start: async () => {
      Object.assign(ports, await start(building));
    },
    stop: () => lifecycle.stopAll(config.stopWaitMs + stopMarginMs),
  };
}

async function start(building: Building): Promise<Gateway['ports']> {
  const { config, logger, lifecycle, health } = building;
  let isServing = false;
  health.check('clients', () => isServing || 'clients are not served yet, or not any more');
  await health.start();
  lifecycle.add('health', () => health.stop());
  const { natsUrl: url, natsUser: user, natsPassword: password, instance } = config;
  const broker = await connectBroker({ url, user, password, name: `gateway ${instance}`, logger });
  lifecycle.add('broker', () => broker.close());
  await checkInstallation(config, broker);
  const parts = await buildParts(building, broker);
  for (const [name, check] of readyChecks(parts, broker)) health.check(name, check);
  const grpc = await serveControl(parts, config.grpcAddress, logger);
  lifecycle.add('grpc', () => grpc.stop());
  const door = new HttpDoor(parts);
  startLease(building, broker, grpc.port);
  await door.start();
  lifecycle.add('http', () => {
    isServing = false;
    return door.stop();
  });
  isServing = true;
  return { http: door.port, grpc: grpc.port, health: health.port };
}

async function buildParts(building: Building, broker: Broker): Promise<Parts> {
  const { config, clock, events, lifecycle } = building;
  const blobs = await openBlobStore(config, broker);
  const publisher = new FactPublisher(broker, { blobs });
  const store = await startStore(building, broker, publisher);
  const afterwards = new Afterwards(events);
  lifecycle.add('afterwards', () => afterwards.settled());
  const valkey = new Valkey({ url: config.valkeyUrl, waitMs: config.lookupWaitMs, clock, events });
  valkey.start();
  lifecycle.add('valkey', () => valkey.stop());
  return {
    config,
    clock,
    events,
    publisher,
    store,
    places: new Places(config),
    callers: new Callers(config.hashSecret),
    keys: await startKeys(building, broker),
    routes: await startRoutes(building, broker),
    fleet: await startFleet(building, broker),
    index: new AnswerIndex(valkey, config.indexKeepMs),
    minutes: new MinuteCounts(valkey, clock),
    reader: new FactReader(broker, blobs),
    encode: encodeConversation,
    afterwards: (work) => afterwards.add(work),
  };
}

async function startStore(building: Building, broker: Broker, publisher: FactPublisher): Promise<TurnStore> {
  const { config, clock, events, lifecycle } = building;
  const spool = await Spool.open({ directory: config.spoolDirectory, bytesMax: config.spoolBytesMax, events });
  lifecycle.add('spool', () => spool.close());
  const drain = new SpoolDrain({ spool, publisher, clock, events, onStored: () => store.brokerIsBack() });
  lifecycle.add('drain', () => drain.stop());
  const { storeWaitMs } = config;
  const required = config.capture === 'required';
  const store = new TurnStore({
    publisher,
    spool,
    clock,
    events,
    storeWaitMs,
    required,
    onSpooled: () => drain.kick(),
  });
  const ignore = broker.onStatus((status) => {
    if (status === 'up') drain.kick();
  });
  lifecycle.add('broker status', () => ignore());
  drain.kick();
  return store;
}

async function startKeys({ config, clock, events, lifecycle }: Building, broker: Broker): Promise<KeyRing> {
  const source =
    config.keysFile === ''
      ? keysInBucket(kvBucket(broker, 'keys', jsonCodec(keyGrant)))
      : keysInFile(config.keysFile, clock, events);
  const keys = new KeyRing(source, isLoopback(config.httpAddress.host), events);
  await keys.start();
  lifecycle.add('keys', () => keys.stop());
  return keys;
}

async function startRoutes({ events, lifecycle }: Building, broker: Broker): Promise<RouteTable> {
  const routes = new RouteTable(kvBucket(broker, 'routes', Routes), events);
  await routes.start();
  lifecycle.add('routes', () => routes.stop());
  return routes;
}

async function startFleet({ config, clock, events, lifecycle }: Building, broker: Broker): Promise<EngineFleet> {
  const leases = await watchLeases(broker, 'loader');
  const fleet = new EngineFleet({ leases, apiKey: config.engineKey, clock, events });
  fleet.start();
  lifecycle.add('engines', () => fleet.stop());
  return fleet;
}

/** Released only after the answers in hand are over, because the publisher counts them by the lease. */
function startLease({ config, health, lifecycle, logger }: Building, broker: Broker, grpcPort: number): void {
  const { instance } = config;
  const lease = holdLease({
    broker,
    lease: () => ({
      kind: 'gateway',
      instance,
      ...leaseAddresses(config, { grpc: grpcPort, health: health.port }),
      engine: undefined,
    }),
  });
  lifecycle.add('lease', () =>
    lease.release().catch((error: unknown) => logger.warn('lease_not_released', { error: asBacktalkError(error) })),
  );
}

function isLoopback(host: string): boolean {
  return host === 'localhost' || host === '::1' || /^127\./.test(host);
}
