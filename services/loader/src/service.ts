// The loader's composition root: one engine, its adapters, its lease.
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { createEngineClient } from '@backtalk/dialects';
import {
  baseVersion,
  createService,
  kvBucket,
  serviceLease,
  type LeaseHold,
  type ServiceContext,
  type ServiceOverrides,
  type ServiceWithPorts,
} from '@backtalk/kit';
import { serveGrpc } from '@backtalk/kit/grpc';
import { LoaderServiceDefinition } from '@backtalk/proto/control';
import { LoadSet } from '@backtalk/proto/weights';
import type { LoaderConfig } from './config.js';
import { baseShapeOf, type BaseShape } from './domain/adapter-shape.js';
import { servesPolicies } from './domain/requirements.js';
import { parseObject } from './domain/safetensors.js';
import { createEvents } from './events.js';
import { EngineKeeper } from './inputs/engine-keeper.js';
import { loaderCalls } from './inputs/loader-calls.js';
import { EngineState } from './outputs/engine-state.js';
import { LoadedAdapters } from './outputs/loaded-adapters.js';
import { RankTrial } from './outputs/rank-trial.js';
import { WeightsFiles } from './outputs/weights-files.js';

export interface Loader extends ServiceWithPorts<'grpc'> {
  readonly state: EngineState;
}

const stopWithinMs = 8_000;

export function createLoader(config: LoaderConfig, overrides: ServiceOverrides = {}): Loader {
  const { engineUrl, engineDialect, enginePools, policies } = config;
  // Before the engine was looked at for the first time.
  const state = new EngineState({
    url: engineUrl.replace(/\/(v1\/?)?$/, ''),
    dialect: engineDialect,
    pools: [...enginePools],
    baseModel: '',
    maxContext: 0,
    versions: servesPolicies(enginePools) ? policies.map(baseVersion) : [],
    ready: false,
    reason: 'the engine has not answered yet',
    capabilities: [],
  });
  const service = createService({
    name: 'loader',
    config,
    overrides,
    streams: [],
    stopWithinMs,
    start: (context) => startParts(context, state),
  });
  return Object.assign(service, { state });
}

async function startParts(context: ServiceContext<LoaderConfig>, state: EngineState): Promise<{ grpc: number }> {
  const { config, clock, logger, metrics, health, lifecycle, broker, blobs, fail } = context;
  const { policies } = config;
  const events = createEvents(logger, metrics);
  health.check('engine', () => state.current.ready || state.current.reason);
  const engine = createEngineClient({ dialect: config.engineDialect, url: config.engineUrl, apiKey: config.engineKey });
  lifecycle.add('engine', () => engine.close());
  // The base's dimensions, where its folder is known and its family is.
  let shape: BaseShape | undefined;
  if (config.modelDir !== '') {
    const model = parseObject(await readFile(join(config.modelDir, 'config.json'), 'utf8').catch(() => ''));
    shape = model && baseShapeOf(model);
  }
  const files = new WeightsFiles(blobs, config.adapterDir, shape);
  await files.start();
  const adapters = new LoadedAdapters(
    engine,
    files,
    { clock, events, deadlineMs: config.engineDeadlineMs },
    (names) => {
      state.change({ versions: [...policies.map(baseVersion), ...names] });
    },
  );
  const rankTrial = new RankTrial(engine, config.loraRank, config.adapterDir, shape, events);
  const keeper = new EngineKeeper(config, { engine, adapters, rankTrial, state, clock, events, fail });
  const following = new AbortController();
  lifecycle.add('load set', () => {
    following.abort();
  });
  const loadSets = kvBucket(broker, 'load', LoadSet);
  for (const policy of policies) {
    await loadSets.watch(
      policy,
      (change) => {
        keeper.follow(policy, change.kind === 'put' ? change.value.versions : undefined);
      },
      following.signal,
    );
  }
  keeper.start();
  lifecycle.add('engine keeper', () => keeper.stop());
  const implementation = loaderCalls(policies, adapters, state, keeper);
  const services = [{ definition: LoaderServiceDefinition, implementation }];
  const grpc = await serveGrpc({ address: config.grpcAddress, services, logger, wire: context.wire });
  lifecycle.add('grpc', () => grpc.stop(stopWithinMs / 4));
  let lease: LeaseHold | undefined;
  const unwatch = state.onChange((present) => {
    events.engineChanged(present);
    void lease?.refresh();
  });
  let isStopping = false;
  lifecycle.add('engine state', () => {
    isStopping = true;
    unwatch();
  });
  // A loader that was killed finds an engine that serves: its earlier lease stands until this life has looked at the engine
  // once, so that gateways go on routing to it in between.
  void keeper.looked.then(() => {
    if (!isStopping) lease = serviceLease(context, grpc.port, () => state.current);
  });
  return { grpc: grpc.port };
}
