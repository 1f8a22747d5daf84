// Puts a publisher together: the chain, the loaders, the gateways, and the work of the leading one.
import {
  checkInstallation,
  connectBroker,
  createLogger,
  FactPublisher,
  FactReader,
  Health,
  holdLease,
  leaseAddresses,
  kvBucket,
  Lifecycle,
  Metrics,
  openBlobStore,
  serveGrpc,
  singleton,
  systemClock,
  watchLeases,
  type BacktalkError,
  type BlobStore,
  type Broker,
  type Clock,
  type Logger,
  type Service,
  type Singleton,
} from '@backtalk/kit';
import { PublisherControlServiceDefinition } from '@backtalk/proto/control';
import { LoadSet, Routes } from '@backtalk/proto/weights';
import { parityMaxFor, type PublisherConfig } from './config.js';
import { publisherErrors } from './errors.js';
import { createEvents, type PublisherEvents } from './events.js';
import { Leader } from './inputs/leadership.js';
import { Retirement } from './inputs/retirement.js';
import { rollbackCalls } from './inputs/rollback.js';
import { Swap, type SwapStep } from './inputs/swap.js';
import { TrainedFacts } from './inputs/trained-facts.js';
import { Announcer } from './outputs/announcer.js';
import { Gateways } from './outputs/gateways.js';
import { Loaders } from './outputs/loaders.js';
import { readManifest } from './outputs/manifests.js';
import { ProbeScorer } from './outputs/probe-scores.js';
import { StagedChain } from './outputs/staged-chain.js';
import { StandingBoard } from './outputs/standing-board.js';

export interface PublisherOverrides {
  readonly logger?: Logger;
  readonly clock?: Clock;
  /** Called between two effects; a test may let it never return. */
  readonly reached?: (step: SwapStep) => void | Promise<void>;
  /** Told of errors that should end the service. */
  readonly onFatal?: (error: BacktalkError) => void;
}

export interface Publisher extends Service {
  /** Ports that are really bound, once started. */
  readonly ports: { grpc: number; health: number };
}

const stopMs = 8_000;

interface Parts {
  readonly config: PublisherConfig;
  readonly overrides: PublisherOverrides;
  readonly broker: Broker;
  readonly metrics: Metrics;
  readonly events: PublisherEvents;
  readonly logger: Logger;
  readonly clock: Clock;
  readonly lifecycle: Lifecycle;
  readonly healthPort: number;
  readonly fail: (error: BacktalkError) => void;
}

export function createPublisher(config: PublisherConfig, overrides: PublisherOverrides = {}): Publisher {
  const logger = overrides.logger ?? createLogger({ service: 'publisher', level: config.logLevel });
  const clock = overrides.clock ?? systemClock;
  const metrics = new Metrics('publisher');
  const events = createEvents(logger, metrics);
  const lifecycle = new Lifecycle(logger);
  const health = new Health({ address: config.healthAddress, metrics, logger });
  const ports = { grpc: 0, health: 0 };
  return {
    ports,
    start: async () => {
      await health.start();
      ports.health = health.port;
      lifecycle.add('health', () => health.stop());
      const { natsUrl: url, natsUser: user, natsPassword: password } = config;
      const broker = await connectBroker({ url, user, password, name: `publisher ${config.instance}`, logger });
      lifecycle.add('broker', () => broker.close());
      await checkInstallation(config, broker);
      health.check('broker', () => broker.status() === 'up' || 'the broker is away');
      const healthPort = health.port;
      const fail = overrides.onFatal ?? endTheProcess;
      ports.grpc = await startParts({
        config,
        overrides,
        broker,
        metrics,
        events,
        logger,
        clock,
        lifecycle,
        healthPort,
        fail,
      });
    },
    stop: () => lifecycle.stopAll(stopMs),
  };
}

/** Starts what needs the broker; returns the port of the gRPC server. */
async function startParts(parts: Parts): Promise<number> {
  const { config, broker, lifecycle, events, logger, clock } = parts;
  const { policy } = config;
  const blobs = await openBlobStore(config, broker);
  const reader = new FactReader(broker, blobs);
  const chain = new StagedChain(reader, new FactPublisher(broker), policy);
  const { loaders, gateways } = await startPeers(parts);
  const board = new StandingBoard(kvBucket(broker, 'load', LoadSet), kvBucket(broker, 'routes', Routes));
  const announcer = new Announcer(chain, board, gateways, events);
  const isLeading = () => leadership.leading;
  const swap = makeSwap(parts, { chain, loaders, announcer }, blobs, isLeading);
  const { streamMaxMs, sweepMs } = config;
  const retirement = new Retirement({ policy, chain, loaders, gateways, announcer, clock, streamMaxMs });
  const { ackWaitMs } = config;
  const trained = new TrainedFacts({ ...parts, policy, ackWaitMs, blobs }, (sequence) => leader.decideUpTo(sequence));
  const leader: Leader = new Leader({
    policy,
    chain,
    reader,
    announcer,
    swap,
    retirement,
    events,
    clock,
    sweepMs,
    consume: () => trained.start(),
    fail: parts.fail,
  });
  const leadership: Singleton = lead(parts, leader, trained);
  const calls = rollbackCalls({ policy, chain, loaders, announcer, events, leading: isLeading });
  const service = { definition: PublisherControlServiceDefinition, implementation: calls };
  const grpc = await serveGrpc({ address: config.grpcAddress, services: [service], logger });
  lifecycle.add('grpc', () => grpc.stop(stopMs / 4));
  startLease(parts, grpc.port);
  await leadership.start();
  lifecycle.add('leadership', () => leadership.stop());
  return grpc.port;
}

async function startPeers({ config, broker, events, lifecycle, clock }: Parts) {
  const loaderLeases = await watchLeases(broker, 'loader');
  const gatewayLeases = await watchLeases(broker, 'gateway');
  const loaders = new Loaders(loaderLeases, config.policy, config.prepareDeadlineMs, events, clock);
  const gateways = new Gateways(gatewayLeases, config.commitDeadlineMs, events);
  lifecycle.add('peers', () => {
    loaderLeases.stop();
    gatewayLeases.stop();
    loaders.close();
    gateways.close();
  });
  return { loaders, gateways };
}

function makeSwap(
  { config, overrides, events, lifecycle }: Parts,
  tools: { chain: StagedChain; loaders: Loaders; announcer: Announcer },
  blobs: BlobStore,
  isLeading: () => boolean,
): Swap {
  const scorer = new ProbeScorer(config.engineKey, config.gateDeadlineMs);
  lifecycle.add('probes', () => scorer.stop());
  return new Swap({
    ...tools,
    policy: config.policy,
    scorer,
    manifestOf: (version, digest) => readManifest(blobs, version, digest),
    events,
    parityMaxFor: (dtype) => parityMaxFor(config, dtype),
    driftMax: config.driftMax,
    reached: async (step) => {
      await overrides.reached?.(step);
      // Another may lead by now: what is left is theirs to do.
      if (!isLeading()) throw publisherErrors.notLeading();
    },
  });
}

function lead({ config, broker, events }: Parts, leader: Leader, trained: TrainedFacts): Singleton {
  let leading: Promise<void> = Promise.resolve();
  return singleton(broker, 'publisher', config.instance, {
    onGained: (signal) => {
      events.leadership(true);
      // It runs beside the renewal of the lease, and ends with the signal.
      leading = leader.lead(signal);
    },
    onLost: async () => {
      events.leadership(false);
      await trained.stop();
      await leading;
    },
  });
}

/** Nobody catches it, so the process ends with the error in its log. */
function endTheProcess(error: BacktalkError): void {
  queueMicrotask(() => {
    throw error;
  });
}

function startLease({ config, broker, lifecycle, healthPort }: Parts, grpcPort: number): void {
  const lease = {
    kind: 'publisher',
    instance: config.instance,
    ...leaseAddresses(config, { grpc: grpcPort, health: healthPort }),
    engine: undefined,
  };
  const held = holdLease({ broker, lease: () => lease });
  lifecycle.add('lease', () => held.release());
}
