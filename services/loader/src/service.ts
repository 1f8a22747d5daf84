// Puts a loader together: one engine, its adapters, its lease.
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { createEngineClient, type EngineClient } from '@backtalk/dialects';
import {
  checkInstallation,
  connectBroker,
  createLogger,
  Health,
  holdLease,
  leaseAddresses,
  kvBucket,
  Lifecycle,
  Metrics,
  openBlobStore,
  serveGrpc,
  systemClock,
  type Broker,
  type Clock,
  type LeaseHold,
  type Logger,
  type Service,
} from '@backtalk/kit';
import { LoaderServiceDefinition } from '@backtalk/proto/control';
import { LoadSet, type Lease } from '@backtalk/proto/weights';
import type { LoaderConfig } from './config.js';
import type { BaseShape } from './domain/adapter-shape.js';
import { baseShapeOf } from './domain/base-shape.js';
import { servesPolicies } from './domain/requirements.js';
import { parseObject } from './domain/safetensors.js';
import { baseVersionOf } from './domain/versions.js';
import { createEvents, type LoaderEvents } from './events.js';
import { EngineKeeper } from './inputs/engine-keeper.js';
import { loaderCalls } from './inputs/loader-calls.js';
import { LoadSetWatch } from './inputs/load-set-watch.js';
import { EngineBoard } from './outputs/engine-board.js';
import { HeldAdapters } from './outputs/held-adapters.js';
import { RankTrial } from './outputs/rank-trial.js';
import { WeightsFiles } from './outputs/weights-files.js';

export interface LoaderOverrides {
  readonly logger?: Logger;
  readonly clock?: Clock;
}

export interface Loader extends Service {
  readonly board: EngineBoard;
  /** Ports that are really bound, once started. */
  readonly ports: { grpc: number; health: number };
}

const stopMs = 8_000;

export function createLoader(config: LoaderConfig, overrides: LoaderOverrides = {}): Loader {
  const logger = overrides.logger ?? createLogger({ service: 'loader', level: config.logLevel });
  const clock = overrides.clock ?? systemClock;
  const metrics = new Metrics('loader');
  const events = createEvents(logger, metrics);
  const lifecycle = new Lifecycle(logger);
  const board = new EngineBoard(firstPicture(config));
  const health = new Health({ address: config.healthAddress, metrics, logger });
  const ports = { grpc: 0, health: 0 };
  return {
    board,
    ports,
    start: async () => {
      health.check('engine', () => board.current.ready || board.current.reason);
      await health.start();
      ports.health = health.port;
      lifecycle.add('health', () => health.stop());
      const broker = await connectBroker({
        url: config.natsUrl,
        user: config.natsUser,
        password: config.natsPassword,
        name: `loader ${config.instance}`,
        logger,
      });
      lifecycle.add('broker', () => broker.close());
      await checkInstallation(config, broker);
      health.check('broker', () => broker.status() === 'up' || 'the broker is away');
      ports.grpc = await startParts({
        config,
        broker,
        board,
        events,
        clock,
        logger,
        lifecycle,
        healthPort: health.port,
      });
    },
    stop: () => lifecycle.stopAll(stopMs),
  };
}

interface Parts {
  readonly config: LoaderConfig;
  readonly broker: Broker;
  readonly board: EngineBoard;
  readonly events: LoaderEvents;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly lifecycle: Lifecycle;
  readonly healthPort: number;
}

/** Starts what needs the broker; returns the port of the gRPC server. */
async function startParts(parts: Parts): Promise<number> {
  const { config, broker, board, events, clock, logger, lifecycle } = parts;
  const engine = createEngineClient({ dialect: config.engineDialect, url: config.engineUrl, apiKey: config.engineKey });
  lifecycle.add('engine', () => engine.close());
  const shape = await readBaseShape(config.model);
  const adapters = await heldAdapters(parts, engine, shape);
  const keeper: EngineKeeper = new EngineKeeper({
    policy: config.policy,
    needs: { dialect: config.engineDialect, baseModel: config.baseModel, contextMin: config.contextMin },
    servesPolicy: servesPolicies(config.enginePools),
    rankTrial: new RankTrial({ engine, rank: config.loraRank, directory: config.adapterDir, shape }),
    engine,
    adapters,
    board,
    clock,
    events,
    wanted: () => loadSet.current,
    checkMs: config.engineCheckMs,
    engineDeadlineMs: config.engineDeadlineMs,
    retireGraceMs: config.retireGraceMs,
  });
  const loadSet = new LoadSetWatch(kvBucket(broker, 'load', LoadSet), config.policy, () => keeper.kick());
  await loadSet.start();
  lifecycle.add('load set', () => loadSet.stop());
  keeper.start();
  lifecycle.add('engine keeper', () => keeper.stop());
  const calls = loaderCalls({ policy: config.policy, adapters, board, baseModel: () => keeper.baseModel });
  const grpc = await serveGrpc({
    address: config.grpcAddress,
    services: [{ definition: LoaderServiceDefinition, implementation: calls }],
    logger,
  });
  lifecycle.add('grpc', () => grpc.stop(stopMs / 4));
  startLease(parts, keeper, grpc.port);
  return grpc.port;
}

async function heldAdapters(
  { config, broker, board, events, clock }: Parts,
  engine: EngineClient,
  shape: BaseShape | undefined,
): Promise<HeldAdapters> {
  const blobs = await openBlobStore(config, broker);
  const files = new WeightsFiles(blobs, config.adapterDir, shape);
  await files.start();
  const base = baseVersionOf(config.policy);
  return new HeldAdapters({
    engine,
    files,
    clock,
    events,
    engineDeadlineMs: config.engineDeadlineMs,
    onChange: (versions) => board.change({ versions: [base, ...versions] }),
  });
}

/**
 * A loader that was killed finds an engine that serves: its earlier lease stands until this life has looked at the engine
 * once, so that nobody stops routing to it in between.
 */
function startLease(parts: Parts, keeper: EngineKeeper, grpcPort: number): void {
  const { config, broker, board, lifecycle, healthPort, events } = parts;
  const lease = (): Lease => ({
    kind: 'loader',
    instance: config.instance,
    ...leaseAddresses(config, { grpc: grpcPort, health: healthPort }),
    engine: board.current,
  });
  let held: LeaseHold | undefined;
  let stopped = false;
  void keeper.looked.then(() => {
    if (!stopped) held = holdLease({ broker, lease });
  });
  lifecycle.add('lease', async () => {
    stopped = true;
    await held?.release();
  });
  const unwatch = board.onChange((engine) => {
    events.engineChanged(engine);
    void held?.refresh();
  });
  lifecycle.add('board', unwatch);
}

function firstPicture(config: LoaderConfig) {
  return {
    url: config.engineUrl.replace(/\/(v1\/?)?$/, ''),
    dialect: config.engineDialect,
    pools: [...config.enginePools],
    baseModel: '',
    maxContext: 0,
    versions: servesPolicies(config.enginePools) ? [baseVersionOf(config.policy)] : [],
    ready: false,
    reason: 'the engine has not answered yet',
    capabilities: [],
  };
}

/** The base's dimensions, where its folder is known and its family is. */
async function readBaseShape(folder: string): Promise<BaseShape | undefined> {
  if (folder === '') return undefined;
  const config = parseObject(await readFile(join(folder, 'config.json'), 'utf8').catch(() => ''));
  return config && baseShapeOf(config);
}
