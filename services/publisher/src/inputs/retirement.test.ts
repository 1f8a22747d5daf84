import { FactPublisher, FactReader, kvBucket, Metrics, systemClock, type LeaseView } from '@backtalk/kit';
import { serveGrpc, type GrpcServer } from '@backtalk/kit/grpc';
import { silentLogger, startNats, type TestNats } from '@backtalk/kit/testing';
import { GatewayControlServiceDefinition, LoaderServiceDefinition, type RetireRequest } from '@backtalk/proto/control';
import { WeightsStaged_Stage } from '@backtalk/proto/facts';
import { EngineLease, Lease, LoadSet, Routes } from '@backtalk/proto/weights';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { createEvents } from '../events.js';
import { publisherErrors } from '../errors.js';
import { Gateways } from '../outputs/gateways.js';
import { Loaders } from '../outputs/loaders.js';
import { Routing } from '../outputs/routing.js';
import { StagedChain } from '../outputs/staged-chain.js';
import { Retirement } from './retirement.js';

const policy = 'backtalk';
const address = { host: '127.0.0.1', port: 0 };
const events = createEvents(silentLogger, new Metrics('publisher'), ['backtalk']);
let nats: TestNats;
let servers: GrpcServer[];
let leading: boolean;
/** Runs when a gateway is asked for its streams. */
let onAsked: () => void;
let retired: RetireRequest[];

const assertLeading = (): void => {
  if (!leading) throw publisherErrors.notLeading();
};

beforeEach(async () => {
  [nats, servers, leading, onAsked, retired] = [await startNats(), [], true, () => undefined, []];
});

afterEach(async () => {
  await Promise.all(servers.map((server) => server.stop(0)));
  await nats.stop();
});

function leases(lease: Lease): LeaseView {
  return {
    current: () => [lease],
    onChange: () => () => undefined,
    lookAgain: () => Promise.resolve(),
    stop: () => undefined,
  };
}

/** A loader and a gateway that listen, and a chain whose base is stable. */
async function startParts() {
  const loader = await serveGrpc({
    address,
    logger: silentLogger,
    services: [
      {
        definition: LoaderServiceDefinition,
        implementation: {
          prepare: () => Promise.reject(publisherErrors.notLeading()),
          retire: (request) => {
            retired.push(request);
            return Promise.resolve({ already: false });
          },
          watch: async function* () {
            yield await Promise.resolve({ engine: undefined });
          },
        },
      },
    ],
  });
  const gateway = await serveGrpc({
    address,
    logger: silentLogger,
    services: [
      {
        definition: GatewayControlServiceDefinition,
        implementation: {
          commit: () => Promise.resolve({ fence: 0 }),
          async *streams() {
            onAsked();
            yield await Promise.resolve({ inFlight: {}, fence: 1_000 });
          },
        },
      },
    ],
  });
  servers.push(loader, gateway);
  const engine = EngineLease.fromPartial({ ready: true, versions: ['backtalk-v0', 'backtalk-v1'] });
  const loaderLease = Lease.fromPartial({
    kind: 'loader',
    instance: 'l',
    grpcAddress: `127.0.0.1:${loader.port}`,
    engine,
  });
  const gatewayLease = Lease.fromPartial({ kind: 'gateway', instance: 'g', grpcAddress: `127.0.0.1:${gateway.port}` });
  const loaders = new Loaders(leases(loaderLease), policy, 1_000, events, systemClock);
  const gateways = new Gateways(leases(gatewayLease), 1_000, events, systemClock);
  const broker = await nats.connect('publisher');
  const chain = new StagedChain(new FactReader(broker), new FactPublisher(broker), policy);
  const stage = WeightsStaged_Stage.STAGE_STABLE;
  await chain.append(await chain.reload(), { version: 'backtalk-v0', stage, why: 'the base model' });
  const routes = kvBucket(broker, 'routes', Routes);
  const looked = { then: (): void => undefined };
  const routing = new Routing(chain, kvBucket(broker, 'load', LoadSet), routes, gateways, events, () => {
    assertLeading();
    looked.then();
  });
  const parts = { policy, chain, loaders, gateways, routing, events, clock: systemClock, assertLeading };
  return { chain, loaders, routes, routing, looked, retirement: new Retirement(parts, 60_000) };
}

it('a version that a rollback makes ready is not taken off meanwhile', async () => {
  const { loaders, retirement } = await startParts();
  await loaders.keeping('backtalk-v1', () => retirement.sweep());
  expect(retired).toEqual([]);
  await retirement.sweep();
  expect(retired).toMatchObject([{ version: 'backtalk-v1' }]);
});

describe('a publisher that leads no more', () => {
  it('retires nothing that it decided while it led', async () => {
    const { retirement } = await startParts();
    onAsked = () => (leading = false);
    await expect(retirement.sweep()).rejects.toMatchObject({ code: 'not_leading' });
    expect(retired).toEqual([]);
  });

  it('retires with the fence of the newest decision that it knows', async () => {
    const { chain, retirement } = await startParts();
    await retirement.sweep();
    expect(retired).toEqual([{ policy, version: 'backtalk-v1', fence: chain.state.fence }]);
    expect(chain.state.fence).toBeGreaterThan(0);
  });

  it('a publisher that leads no more does not write over routes that another wrote after it had looked', async () => {
    const { chain, routes, routing, looked } = await startParts();
    const newer = Routes.fromPartial({ policy, stable: 'backtalk-v9', fence: chain.state.fence + 1 });
    await routes.put(policy, Routes.fromPartial({ policy, fence: 0 }));
    await routing.writeLoadSet();
    let written: Promise<unknown> = Promise.resolve();
    looked.then = () => {
      looked.then = () => undefined;
      written = routes.put(policy, newer);
    };
    await routing.converge();
    await written;
    expect((await routes.get(policy))?.value).toEqual(newer);
  });
});
