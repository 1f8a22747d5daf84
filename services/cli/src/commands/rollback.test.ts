import { BacktalkError, holdLease, kvBucket } from '@backtalk/kit';
import { serveGrpc } from '@backtalk/kit/grpc';
import { silentLogger, startNats, TemporaryDirectory, type TestNats } from '@backtalk/kit/testing';
import {
  PublisherControlServiceDefinition,
  type BurnRequest,
  type RollbackRequest,
  type RollbackResponse,
} from '@backtalk/proto/control';
import { Lease, Routes } from '@backtalk/proto/weights';
import { afterAll, afterEach, beforeEach, expect, it } from 'vitest';
import { printCommand, runCommand } from '../testing/cluster-command.js';

const directory = new TemporaryDirectory('rollback-command');
const notLeading = () =>
  new BacktalkError({
    code: 'not_leading',
    status: 503,
    retry: 'later',
    message: 'No publisher leads here.',
    detail: {},
  });
const lost = () =>
  new BacktalkError({
    code: 'deadline_exceeded',
    status: 504,
    retry: 'later',
    message: 'It took too long.',
    detail: {},
  });
const done: RollbackResponse = { from: 'p-v2', to: 'p-v1', seconds: 0.01, burned: ['p-v2'], untold: false };

let nats: TestNats;
let stops: (() => Promise<unknown>)[] = [];

beforeEach(async () => {
  nats = await startNats();
});

afterEach(async () => {
  for (const stop of stops.toReversed()) await stop();
  stops = [];
  await nats.stop();
});

afterAll(() => directory.remove());

type Rollback = (request: RollbackRequest) => Promise<RollbackResponse>;

async function startPublisher(
  instance: string,
  rollback: Rollback,
  burn: (request: BurnRequest) => Promise<object> = () => Promise.reject(notLeading()),
): Promise<void> {
  const services = [{ definition: PublisherControlServiceDefinition, implementation: { rollback, burn } }];
  const server = await serveGrpc({ address: { host: '127.0.0.1', port: 0 }, logger: silentLogger, services });
  const broker = await nats.connect('publisher');
  const grpcAddress = `127.0.0.1:${String(server.port)}`;
  const lease = holdLease({ broker, lease: () => Lease.fromPartial({ kind: 'publisher', instance, grpcAddress }) });
  await lease.refresh();
  stops.push(
    () => server.stop(0),
    () => lease.release(),
  );
}

const place = () => ({ nats, user: 'cli', folder: directory.path, environment: { BACKTALK_POLICY: 'p' } }) as const;
const rollBack = () => runCommand(place(), ['rollback']);

it('rollback asks the publisher that leads, in whichever order several are found', async () => {
  let refused = 0;
  const waits = () => {
    refused += 1;
    return Promise.reject(notLeading());
  };
  await startPublisher('a', waits);
  await startPublisher('b', () => Promise.resolve(done));
  await startPublisher('c', waits);
  expect(await rollBack()).toMatchObject({ status: 0, values: [done] });
  expect(refused).toBeGreaterThan(0);
});

it('rollback asks again where a publisher is lost before it answers, for the same version', async () => {
  const routes = kvBucket(await nats.connect('publisher'), 'routes', Routes);
  await routes.put('p', Routes.fromPartial({ policy: 'p', stable: 'p-v2' }));
  const asked: string[] = [];
  await startPublisher('a', ({ from }) => {
    asked.push(from);
    // The first burns it and is gone; who leads then finds it burned.
    if (asked.length === 1) return Promise.reject(lost());
    return Promise.resolve({ from, to: 'p-v1', seconds: 0.01, burned: [], untold: false });
  });
  expect(await rollBack()).toMatchObject({ status: 0, values: [{ from: 'p-v2', to: 'p-v1', burned: ['p-v2'] }] });
  expect(asked).toEqual(['p-v2', 'p-v2']);
});

it('rollback asks again until a publisher leads that takes over, and takes no word of its own for what another burned', async () => {
  const routes = kvBucket(await nats.connect('publisher'), 'routes', Routes);
  await routes.put('p', Routes.fromPartial({ policy: 'p', stable: 'p-v2' }));
  let asked = 0;
  await startPublisher('a', ({ from }) => {
    asked += 1;
    return asked < 3 ? Promise.reject(notLeading()) : Promise.resolve({ ...done, from, burned: [] });
  });
  expect(await rollBack()).toMatchObject({ status: 0, values: [{ from: 'p-v2', to: 'p-v1', burned: [] }] });
  expect(asked).toBe(3);
});

it('rollback says so where no publisher leads', async () => {
  await startPublisher('a', () => Promise.reject(notLeading()));
  expect(await rollBack()).toMatchObject({ status: 1, values: [{ error: { code: 'not_leading' } }] });
});

it('rollback says of a version that no gateway was told of that it is to answer yet', async () => {
  await startPublisher('a', () => Promise.resolve({ ...done, untold: true }));
  const { stdout } = await printCommand(place(), ['rollback']);
  expect(stdout).toBe('p-v1 answers again as soon as the publisher that leads tells the gateways; p-v2 is burned.\n');
});

it('versions burn has the publisher that leads burn a candidate of the policy that its name says, with the operator’s words', async () => {
  const asked: BurnRequest[] = [];
  const burn = (request: BurnRequest) => {
    asked.push(request);
    return Promise.resolve({});
  };
  await startPublisher('a', () => Promise.reject(notLeading()));
  await startPublisher('b', () => Promise.reject(notLeading()), burn);
  const { status, stdout } = await printCommand(place(), ['versions', 'burn', 'q-v3', '--why', 'no engine takes it']);
  expect({ status, stdout }).toMatchObject({ status: 0, stdout: expect.stringContaining('q-v3 is burned') as unknown });
  expect(asked).toEqual([{ policy: 'q', version: 'q-v3', why: 'no engine takes it' }]);
});
