// A system around a publisher: a real broker, real loaders as processes, fake engines, and gateways that only listen.
// Everything is stopped in reverse order.
import { join } from 'node:path';
import { putFakeVersion, startFakeEngine, type FakeEngine, type FakeVersionOptions } from '@backtalk/dialects/testing';
import {
  FactPublisher,
  FactReader,
  folderBlobStore,
  holdLease,
  kvBucket,
  readConfig,
  versionName,
  versionParts,
  type BlobStore,
} from '@backtalk/kit';
import { grpcClient, serveGrpc } from '@backtalk/kit/grpc';
import {
  freePort,
  repositoryRoot,
  ServerProcess,
  silentLogger,
  startNats,
  TemporaryDirectory,
  until,
  type TestNats,
} from '@backtalk/kit/testing';
import {
  GatewayControlServiceDefinition,
  PublisherControlServiceDefinition,
  type RollbackResponse,
} from '@backtalk/proto/control';
import { WeightsStaged, WeightsStaged_Stage, WeightsTrained } from '@backtalk/proto/facts';
import { LoadSet, Routes } from '@backtalk/proto/weights';
import { publisherSettings } from '../config.js';
import { createPublisher, type Publisher, type PublisherOverrides } from '../service.js';

const policy = 'backtalk';
const secret = 'a secret of the publisher and';

/** What a publisher sees of a gateway. */
export interface GatewayStandIn {
  readonly commits: Routes[];
  readonly inFlight: Record<string, number>;
  /** How often it was asked for its streams. */
  reports: number;
  /** A policy whose routes it has not followed since the first. */
  behind: string;
}

export class SwapRig {
  /** By policy: the newest fact of what was trained. */
  private readonly trainedSequences = new Map<string, number>();
  private readonly closing: (() => unknown)[] = [];

  private constructor(
    readonly nats: TestNats,
    readonly directory: TemporaryDirectory,
    readonly engine: FakeEngine,
    readonly blobs: BlobStore,
  ) {
    this.closing.push(
      () => directory.remove(),
      () => nats.stop(),
      () => engine.stop(),
    );
  }

  /** @param durableSuffixes names of the policies, where they are others than the usual one */
  static async start(durableSuffixes: readonly string[] = [policy]): Promise<SwapRig> {
    const directory = new TemporaryDirectory('publisher');
    const blobs = folderBlobStore(directory.join('blobs'));
    return new SwapRig(await startNats({ durableSuffixes }), directory, await startFakeEngine(), blobs);
  }

  /** Another engine, stopped with the rest. */
  async startEngine(): Promise<FakeEngine> {
    const engine = await startFakeEngine();
    this.closing.push(() => engine.stop());
    return engine;
  }

  async stop(): Promise<void> {
    for (const close of this.closing.splice(0).reverse()) await close();
  }

  /** A real loader as a process of its own, beside an engine. */
  async startLoader(beside: FakeEngine = this.engine, name = 'loader-1', policies = policy): Promise<ServerProcess> {
    const health = await freePort();
    const environment = {
      ...this.environment('loader', name),
      BACKTALK_HEALTH_ADDRESS: `127.0.0.1:${health}`,
      BACKTALK_ENGINE_URL: beside.url,
      BACKTALK_ENGINE_CHECK: '100ms',
      BACKTALK_ADAPTER_DIR: this.directory.join(name),
      BACKTALK_POLICIES: policies,
    };
    const loader = new ServerProcess({
      program: 'env',
      arguments: [
        ...Object.entries(environment).map(([variable, value]) => `${variable}=${value}`),
        process.execPath,
        join(repositoryRoot(), 'services', 'loader', 'dist', 'main.js'),
      ],
      ready: async () => (await fetch(`http://127.0.0.1:${health}/readyz`)).ok,
    });
    await loader.start();
    this.closing.push(() => loader.kill());
    return loader;
  }

  async startGateway(): Promise<GatewayStandIn> {
    const gateway: GatewayStandIn = { commits: [], inFlight: {}, reports: 0, behind: '' };
    const fence = () => Math.max(0, ...gateway.commits.map((routes) => routes.fence));
    const fences = () =>
      Object.fromEntries(
        gateway.commits.map((routes) => [routes.policy, routes.policy === gateway.behind ? 0 : routes.fence]),
      );
    const server = await serveGrpc({
      address: { host: '127.0.0.1', port: 0 },
      services: [
        {
          definition: GatewayControlServiceDefinition,
          implementation: {
            commit: ({ routes }) => {
              if (routes !== undefined) gateway.commits.push(routes);
              return Promise.resolve({ fence: fence() });
            },
            async *streams() {
              gateway.reports += 1;
              yield await Promise.resolve({ inFlight: gateway.inFlight, fence: fence(), fences: fences() });
            },
          },
        },
      ],
      logger: silentLogger,
      wire: { tokens: { publisherToGateway: `${secret} gateway` } },
    });
    const grpcAddress = `127.0.0.1:${server.port}`;
    const lease = { kind: 'gateway', instance: 'gateway-1', grpcAddress, healthAddress: '', engine: undefined };
    const held = holdLease({ broker: await this.nats.connect('gateway'), lease: () => lease });
    await held.refresh();
    this.closing.push(
      () => server.stop(100),
      () => held.release(),
    );
    return gateway;
  }

  async startPublisher(overrides: PublisherOverrides = {}, more: Record<string, string> = {}): Promise<Publisher> {
    const config = readConfig(publisherSettings, {
      ...this.environment('publisher', 'publisher-1'),
      BACKTALK_PREPARE_DEADLINE: '20s',
      BACKTALK_RETIRE_EVERY: '100ms',
      ...more,
    });
    const publisher = createPublisher(config, { logger: silentLogger, fail: () => undefined, ...overrides });
    await publisher.start();
    this.closing.push(() => publisher.stop());
    return publisher;
  }

  /** Trains these versions one after the other, each once the one before is stable. */
  async release(...numbers: readonly number[]): Promise<void> {
    for (const number of numbers) {
      await this.train(number);
      await this.stableIs(number);
    }
  }

  /** @param measurements what the step found of the version that it started from */
  async train(
    number: number,
    more: Partial<FakeVersionOptions> = {},
    measurements: Readonly<Record<string, number>> = {},
  ): Promise<void> {
    const of = more.policy ?? policy;
    const version = versionName(of, number);
    const parent = more.parent ?? versionName(of, number - 1);
    const { manifestDigest } = await putFakeVersion({ blobs: this.blobs, version, parent, ...more });
    await this.announceTrained(version, parent, manifestDigest, measurements);
  }

  async announceTrained(
    version: string,
    parent: string,
    manifestDigest: string,
    measurements: Readonly<Record<string, number>> = {},
  ): Promise<void> {
    const of = versionParts(version)?.policy ?? policy;
    const report = { measurements, samples: [] };
    const message = WeightsTrained.fromPartial({ policy: of, version, parent, manifestDigest, batch: 1, report });
    const publisher = new FactPublisher(await this.nats.connect('trainer'));
    const expectSequence = this.trainedSequences.get(of) ?? 0;
    const { sequence } = await publisher.publish('weightsTrained', message, { expectSequence });
    this.trainedSequences.set(of, sequence);
  }

  /** As another publisher does it. */
  async burnElsewhere(number: number): Promise<void> {
    const broker = await this.nats.connect('publisher');
    const last = await new FactReader(broker).last('weightsStaged', { policy });
    const version = versionName(policy, number);
    const message = WeightsStaged.fromPartial({ policy, version, stage: WeightsStaged_Stage.STAGE_BURNED });
    await new FactPublisher(broker).publish('weightsStaged', message, { expectSequence: last?.sequence ?? 0 });
  }

  async staged(): Promise<WeightsStaged[]> {
    const reader = new FactReader(await this.nats.connect('publisher'));
    const all: WeightsStaged[] = [];
    for await (const { message } of reader.read(['weightsStaged'])) all.push(message);
    return all;
  }

  async story(): Promise<string[]> {
    return (await this.staged()).map(({ version, stage }) => `${version.slice(-2)} ${stage.slice(6)}`);
  }

  async routes(of = policy): Promise<Routes | undefined> {
    return (await kvBucket(await this.nats.connect('cli'), 'routes', Routes).get(of))?.value;
  }

  async loadSet(of = policy): Promise<string[]> {
    const entry = await kvBucket(await this.nats.connect('cli'), 'load', LoadSet).get(of);
    return entry?.value.versions.map(({ version }) => version) ?? [];
  }

  /** Resolves when it says so: the load set is written after the routes. */
  async loadSetIs(...versions: readonly string[]): Promise<void> {
    const isSo = async () => (await this.loadSet()).join() === versions.join();
    await until(isSo, { what: `the load set ${versions.join(', ')}`, everyMs: 50 });
  }

  /** Resolves when the routes say so. */
  async stableIs(number: number, of = policy): Promise<void> {
    const version = versionName(of, number);
    const isStable = async () => (await this.routes(of))?.stable === version;
    await until(isStable, { what: `${version} to be stable`, everyMs: 50 });
  }

  /** The fact that burned a version, once there is one. */
  burned(number: number): Promise<WeightsStaged> {
    const fact = async () =>
      (await this.staged()).find(
        ({ version, stage }) => stage === WeightsStaged_Stage.STAGE_BURNED && version === `${policy}-v${number}`,
      );
    return until(fact, { what: `v${number} to be burned`, everyMs: 50 });
  }

  async metric(publisher: Publisher, line: RegExp): Promise<number> {
    const url = `http://127.0.0.1:${publisher.ports.health}/metrics`;
    const response = await fetch(url, { signal: AbortSignal.timeout(5_000) });
    const found = (await response.text()).split('\n').find((text) => line.test(text));
    return Number(found?.split(' ').at(-1) ?? Number.NaN);
  }

  async rollBack(
    publisher: Publisher,
    why = 'worse answers',
    of = policy,
    cliToPublisher = `${secret} commands`,
    to = '',
    forgotten: readonly string[] = [],
    undone = false,
  ): Promise<RollbackResponse> {
    const client = grpcClient(PublisherControlServiceDefinition, `127.0.0.1:${publisher.ports.grpc}`, {
      caller: 'cli',
      wire: { tokens: { cliToPublisher } },
    });
    try {
      return await client.rollback({ policy: of, why, to, forgotten: [...forgotten], undone }, { deadlineMs: 30_000 });
    } finally {
      client.close();
    }
  }

  /** To a version that answered before the last. */
  rollBackTo(publisher: Publisher, to: string, forgotten: readonly string[] = []): Promise<RollbackResponse> {
    return this.rollBack(publisher, 'worse answers', policy, `${secret} commands`, to, forgotten);
  }

  /** For the sake of a lesson that is undone. */
  undo(publisher: Publisher, to: string): Promise<RollbackResponse> {
    return this.rollBack(publisher, 'undone', policy, `${secret} commands`, to, [], true);
  }

  /** What every process of the rig is started with. */
  private environment(user: 'loader' | 'publisher', instance: string): Record<string, string> {
    const { url, password } = this.nats.credentials(user);
    return {
      BACKTALK_NATS_URL: url,
      BACKTALK_NATS_USER: user,
      BACKTALK_NATS_PASSWORD: password,
      BACKTALK_HEALTH_ADDRESS: '127.0.0.1:0',
      BACKTALK_GRPC_ADDRESS: '127.0.0.1:0',
      BACKTALK_INSTANCE: instance,
      BACKTALK_BLOB_STORE: `folder:${this.directory.join('blobs')}`,
      BACKTALK_PUBLISHER_TO_LOADER_TOKEN: `${secret} loader`,
      // Those of the publisher's other calls.
      ...(user === 'loader' ? {} : { BACKTALK_PUBLISHER_TO_GATEWAY_TOKEN: `${secret} gateway` }),
      ...(user === 'loader' ? {} : { BACKTALK_CLI_TO_PUBLISHER_TOKEN: `${secret} commands` }),
    };
  }
}
