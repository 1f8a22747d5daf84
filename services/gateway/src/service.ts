// The gateway's composition root.
//
// In: its configuration. Out: a service that starts from what the broker holds (routes, leases, keys) and stops in
// reverse order.
import { getHeapStatistics } from 'node:v8';
import {
  brokerError,
  createService,
  FactPublisher,
  isTracing,
  jsonCodec,
  keyGrant,
  kvBucket,
  serviceLease,
  watchEngineLeases,
  type ServiceContext,
  type ServiceOverrides,
  type ServiceWithPorts,
  MutexByKey,
} from '@backtalk/kit';
import { DeadlyPrompts } from '@backtalk/dialects';
import { Routes } from '@backtalk/proto/weights';
import type { GatewayConfig } from './config.js';
import { pageFiles } from '@backtalk/console/files';
import { BodyBudget } from './domain/body-budget.js';
import { Callers } from './domain/caller.js';
import { FairTurns } from './domain/fair-turns.js';
import { RefusalRoom } from './domain/refusal-room.js';
import { RequestSlots } from './domain/request-slots.js';
import { TraceRate } from './domain/trace-rate.js';
import { chooseVersion } from './domain/version-choice.js';
import { createEvents, type GatewayEvents } from './events.js';
import { serveControl } from './inputs/control.js';
import { HttpServer } from './inputs/http-server.js';
import type { Access, Parts, Serving, Turns } from './inputs/parts.js';
import { createRoutes } from './inputs/routes.js';
import { AnswerIndex } from './outputs/answer-index.js';
import { BackgroundWork } from './outputs/background-work.js';
import { CaptureShare } from './outputs/capture-share.js';
import { ChatReader, readerHeapMebibytes } from './outputs/chat-reader.js';
import { EarlierAnswers } from './outputs/earlier-answers.js';
import { EngineFleet } from './outputs/engine-fleet.js';
import { FactLog } from './outputs/fact-log.js';
import { KeyStore, keysInBucket, keysInFile } from './outputs/key-store.js';
import { LessonView } from './outputs/lesson-view.js';
import { MinuteCounts } from './outputs/minute-counts.js';
import { Packer } from './outputs/packer.js';
import { RouteTable } from './outputs/route-table.js';
import { Spool } from './outputs/spool.js';
import { SpoolDrain } from './outputs/spool-drain.js';
import { TurnStore } from './outputs/turn-store.js';
import { VersionHistory } from './outputs/version-history.js';
import { Valkey } from './outputs/valkey.js';

export type GatewayOverrides = ServiceOverrides;
export type Gateway = ServiceWithPorts<'http' | 'grpc'>;
type Context = ServiceContext<GatewayConfig>;

/**
 * The heap holds a body of up to 1 MiB while it is read, as it was parsed and as it is written again, each in two bytes a
 * character at the worst: four bytes for one. Its own bytes, what engine and log get of it, and all of a large one lie
 * outside. Six leave a third of the heap to the rest.
 */
const bodiesShareOfHeap = 1 / 6;
/** Beyond the time for answers in flight: spool, broker, ports. */
const stopMarginMs = 5_000;

const nextTurn = (go: () => void): unknown => setImmediate(go);
/** That begin or end, at some 300 µs each. */
const requestsOfTurn = { ofKey: 1, inAll: 8 };
/** Pieces of answers, at some 60 µs each. */
const piecesOfTurn = { ofKey: 4, inAll: 32 };
/** Bodies that are read on the event loop, at up to 10 ms each. */
const bodiesOfTurn = { ofKey: 1, inAll: 1 };

export function createGateway(config: GatewayConfig, overrides: GatewayOverrides = {}): Gateway {
  const stopWithinMs = config.stopWaitMs + stopMarginMs;
  // It needs no stream to start: what cannot be stored yet is spooled or refused, as `capture` says.
  return createService({ name: 'gateway', config, overrides, streams: [], stopWithinMs, start });
}

async function start(context: Context) {
  const { config, clock, logger, lifecycle, metrics } = context;
  const events = createEvents(logger, metrics);
  const valkey = new Valkey(config, clock, events, context.wire.tls);
  valkey.start();
  lifecycle.add('valkey', () => valkey.stop());
  const slots = new RequestSlots(config);
  const parts: Parts = {
    config,
    clock,
    events,
    turns: await startTurns(context, events, valkey),
    access: await startAccess(context, events, valkey, slots),
    serving: await startServing(context, events, slots),
  };
  addChecks(context, parts);
  const { wire } = context;
  const grpc = await serveControl(parts.serving, fenceMaxOf(context), {
    clock,
    address: config.grpcAddress,
    logger,
    wire,
  });
  lifecycle.add('grpc', () => grpc.stop());
  const http = new HttpServer(createRoutes(parts, await pageFiles()), config, clock);
  // Released only after the answers in flight are over, because the publisher counts them by the lease.
  serviceLease(context, grpc.port);
  await http.start();
  lifecycle.add('http', () => http.stop());
  return { http: http.port, grpc: grpc.port };
}

/** Fences are sequences of the stream of weights: there is none above its last. */
function fenceMaxOf({ broker }: Context): () => Promise<number> {
  return async () => {
    try {
      return (await broker.jsm.streams.info('WEIGHTS')).state.last_seq;
    } catch (error) {
      throw brokerError(error, { doing: 'look for the newest fence', stream: 'WEIGHTS' });
    }
  };
}

async function startTurns(context: Context, events: GatewayEvents, valkey: Valkey): Promise<Turns> {
  const { config, clock, lifecycle, broker, blobs, reader } = context;
  const publisher = new FactPublisher(broker, { blobs });
  const spool = await Spool.open({ directory: config.spoolDirectory, bytesMax: config.spoolBytesMax, clock, events });
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
    if (status === 'up') drain.wake();
  });
  lifecycle.add('broker status', () => ignore());
  drain.kick();
  const background = new BackgroundWork(events);
  lifecycle.add('background work', () => background.settled());
  const log = new FactLog(publisher, reader, clock, config.indexKeepMs);
  const index = new AnswerIndex(valkey, config.indexKeepMs);
  const lessons = new LessonView(log, clock, events);
  const [earlier, versions] = [new EarlierAnswers(reader, clock), new VersionHistory(reader)];
  return { store, packer: new Packer(), index, log, earlier, lessons, versions, background };
}

async function startAccess(
  { config, clock, lifecycle, broker }: Context,
  events: GatewayEvents,
  valkey: Valkey,
  slots: RequestSlots,
): Promise<Access> {
  const source =
    config.keysFile === ''
      ? keysInBucket(kvBucket(broker, 'keys', jsonCodec(keyGrant)))
      : keysInFile(config.keysFile, clock, events);
  const { host } = config.httpAddress;
  const isLoopback = host === 'localhost' || host === '::1' || /^127\./.test(host);
  // Of the gateway, not of where its keys lie: an operator who moves them from a file to the bucket does not open it.
  const markFile = `${config.spoolDirectory}.had-keys`;
  const formerMarkFile = config.keysFile === '' ? undefined : `${config.keysFile}.had-keys`;
  const keys = new KeyStore(source, isLoopback, markFile, formerMarkFile, events);
  await keys.start();
  lifecycle.add('keys', () => keys.stop());
  const reader = new ChatReader(clock, readerHeapMebibytes);
  lifecycle.add('reader', () => reader.stop());
  const shares = new CaptureShare(valkey, clock, config.tenantBytesPerDay);
  lifecycle.add('shares', () => shares.stop());
  return {
    keys,
    callers: new Callers(config.hashSecret),
    slots,
    fair: new FairTurns(nextTurn, requestsOfTurn),
    fairPieces: new FairTurns(nextTurn, piecesOfTurn),
    fairBodies: new FairTurns(nextTurn, bodiesOfTurn),
    feedback: new MutexByKey(),
    minutes: new MinuteCounts(valkey, clock),
    bodies: new BodyBudget(getHeapStatistics().heap_size_limit * bodiesShareOfHeap),
    reader,
    shares,
    refusals: new RefusalRoom(clock),
    traces: new TraceRate(clock, isTracing),
  };
}

async function startServing(context: Context, events: GatewayEvents, slots: RequestSlots): Promise<Serving> {
  const { config, clock, lifecycle, broker } = context;
  const routes = new RouteTable(kvBucket(broker, 'routes', Routes), events);
  await routes.start();
  lifecycle.add('routes', () => routes.stop());
  const leases = await watchEngineLeases(context);
  const fleet = new EngineFleet({ leases, apiKey: config.engineKey, clock, events });
  fleet.start();
  lifecycle.add('engines', () => fleet.stop());
  return { routes, fleet, slots, deadly: new DeadlyPrompts() };
}

function addChecks({ health, broker }: Context, { config, access, serving, turns }: Parts): void {
  health.check('engines', () => {
    for (const policy of config.policies) {
      const version = chooseVersion(serving.routes.of(policy), policy, config.hashSecret, 'ready');
      if (serving.fleet.candidates(version).length === 0) return `no engine that is ready holds ${version}`;
    }
    return true;
  });
  health.check('capture', () => turns.store.canStore || 'turns cannot be stored, and capture is required');
  health.check(
    'keys',
    () => access.keys.isUsable || 'there is no key, and none opens the gateway: npx backtalk keys add',
  );
  // The broker may be down for as long as the spool has room.
  health.check('broker', () => broker.status() === 'up' || turns.store.canStore || 'the broker cannot be reached');
}
