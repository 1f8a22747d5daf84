// For tests: a gateway with a real broker and a real Valkey, before fake engines.
//
// In: changes to its settings. Out: a started gateway, and what lies around it. Never used in production.
import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { startFakeEngine, type FakeEngine } from '@backtalk/dialects/testing';
import {
  FactReader,
  holdLease,
  kvBucket,
  readConfig,
  systemClock,
  type Broker,
  type Clock,
  type LeaseHold,
} from '@backtalk/kit';
import {
  freePort,
  silentLogger,
  startNats,
  startValkey,
  TemporaryDirectory,
  until,
  type TestNats,
  type TestValkey,
} from '@backtalk/kit/testing';
import { EngineLease, Routes } from '@backtalk/proto/weights';
import OpenAI from 'openai';
import { createGateway, gatewaySettings, type Gateway } from '../index.js';

export interface Surroundings {
  readonly nats: TestNats;
  readonly valkey: TestValkey;
  readonly directory: TemporaryDirectory;
  readonly publisher: Broker;
  readonly loader: Broker;
  readonly reader: FactReader;
  stop(): Promise<void>;
}

export async function startSurroundings(): Promise<Surroundings> {
  const [nats, valkey] = await Promise.all([startNats(), startValkey()]);
  const directory = new TemporaryDirectory('gateway');
  const [publisher, loader, collector] = await Promise.all([
    nats.connect('publisher'),
    nats.connect('loader'),
    nats.connect('collector'),
  ]);
  return {
    nats,
    valkey,
    directory,
    publisher,
    loader,
    reader: new FactReader(collector),
    stop: async () => {
      await Promise.all([nats.stop(), valkey.stop()]);
      directory.remove();
    },
  };
}

export interface LeasedEngine {
  readonly engine: FakeEngine;
  readonly lease: LeaseHold;
  stop(): Promise<void>;
}

/** A fake engine, and the lease by which gateways find it. */
export async function startLeasedEngine(
  { loader }: Surroundings,
  instance: string,
  lease: Partial<EngineLease> = {},
): Promise<LeasedEngine> {
  // A port of its own, so that it can come back there.
  const engine = await startFakeEngine({ port: await freePort() });
  const held = holdLease({
    broker: loader,
    lease: () => ({
      kind: 'loader',
      instance,
      grpcAddress: '',
      healthAddress: '',
      engine: EngineLease.fromPartial({
        url: engine.url,
        dialect: 'builtin',
        pools: ['serving'],
        baseModel: engine.baseModel,
        maxContext: engine.settings.maxContext,
        versions: ['backtalk-v0'],
        ready: true,
        ...lease,
      }),
    }),
  });
  await held.refresh();
  return {
    engine,
    lease: held,
    stop: async () => {
      await held.release();
      await engine.stop();
    },
  };
}

/** Gives an engine a version without a loader. */
export async function loadVersion({ directory }: Surroundings, { engine }: LeasedEngine, name: string): Promise<void> {
  const path = directory.join(name);
  await mkdir(path, { recursive: true });
  await writeFile(join(path, 'adapter_config.json'), '{"r":8}');
  await writeFile(join(path, 'adapter_model.safetensors'), name);
  await engine.adapters.load(name, path, engine.settings);
}

export async function putRoutes({ publisher }: Surroundings, version: string, fence: number): Promise<void> {
  const routes = Routes.fromPartial({ policy: 'backtalk', routes: [{ version, share: 1 }], fence, stable: version });
  await kvBucket(publisher, 'routes', Routes).put('backtalk', routes);
}

export type Environment = Readonly<Record<string, string>>;

let number = 0;

export interface StartedGateway {
  readonly gateway: Gateway;
  /** Of the API, with /v1. */
  readonly url: string;
  readonly environment: Environment;
  metric(name: string): Promise<number>;
}

export function gatewayEnvironment({ nats, valkey, directory }: Surroundings, changes: Environment = {}): Environment {
  number += 1;
  const { url, user, password } = nats.credentials('gateway');
  return {
    BACKTALK_NATS_URL: url,
    BACKTALK_NATS_USER: user,
    BACKTALK_NATS_PASSWORD: password,
    BACKTALK_VALKEY_URL: valkey.url,
    BACKTALK_HEALTH_ADDRESS: '127.0.0.1:0',
    BACKTALK_LISTEN: '127.0.0.1:0',
    BACKTALK_GRPC_ADDRESS: '127.0.0.1:0',
    BACKTALK_HASH_SECRET: 'a secret of the tests, long enough',
    BACKTALK_INSTANCE: `gateway-${number}`,
    BACKTALK_SPOOL_DIR: directory.join(`spool-${number}`),
    BACKTALK_BLOB_STORE: `folder:${directory.join('blobs')}`,
    BACKTALK_STOP_WAIT: '1s',
    // Long, because tests say what becomes of turns that are stored and found; those of the short waits set their own.
    BACKTALK_STORE_WAIT: '10s',
    BACKTALK_LOOKUP_WAIT: '5s',
    ...changes,
  };
}

export async function startGateway(
  around: Surroundings,
  changes: Environment = {},
  clock: Clock = systemClock,
): Promise<StartedGateway> {
  const environment = gatewayEnvironment(around, changes);
  const gateway = createGateway(readConfig(gatewaySettings, environment), { logger: silentLogger, clock });
  await gateway.start();
  const health = `http://127.0.0.1:${gateway.ports.health}`;
  return {
    gateway,
    environment,
    url: `http://127.0.0.1:${gateway.ports.http}/v1`,
    metric: async (name) => {
      const text = await (await fetch(`${health}/metrics`)).text();
      const start = `backtalk_gateway_${name}`;
      // Not the metrics whose names go on.
      const lines = text.split('\n').filter((line) => line.startsWith(start) && !/^\w/.test(line.slice(start.length)));
      return lines.reduce((sum, line) => sum + Number(line.slice(line.lastIndexOf(' ') + 1)), 0);
    },
  };
}

export async function ready({ gateway }: StartedGateway): Promise<void> {
  const url = `http://127.0.0.1:${gateway.ports.health}/readyz`;
  await until(async () => (await fetch(url)).status === 200, { what: 'the gateway’s readiness' });
}

/** Resolves when requests find Valkey: until it is connected they go on without. */
export async function remembering({ metric }: StartedGateway, ask: () => Promise<unknown>): Promise<void> {
  const isFound = async () => {
    const before = await metric('valkey_skipped_total');
    await ask();
    return (await metric('valkey_skipped_total')) === before;
  };
  await until(isFound, { what: 'the gateway’s connection to Valkey' });
}

/** A gateway that answers, one engine behind it, and a client. */
export interface Conversing {
  readonly around: Surroundings;
  readonly leased: LeasedEngine;
  readonly started: StartedGateway;
  readonly client: OpenAI;
  stop(): Promise<void>;
}

export async function startConversing(lease: Partial<EngineLease> = {}): Promise<Conversing> {
  const around = await startSurroundings();
  const leased = await startLeasedEngine(around, 'engine-1', lease);
  const started = await startGateway(around);
  const client = new OpenAI({ baseURL: started.url, apiKey: 'none needed', maxRetries: 0 });
  const messages = [{ role: 'user' as const, content: 'Hello there' }];
  await ready(started);
  await remembering(started, () => client.chat.completions.create({ model: 'backtalk', messages }));
  const stop = async () => {
    await started.gateway.stop();
    await leased.stop();
    await around.stop();
  };
  return { around, leased, started, client, stop };
}
