// The collector's composition root: which turn a request continues, what a turn's next state is, when a session is over.
import {
  consumeFacts,
  createService,
  FactPublisher,
  Mutex,
  type ConfigOf,
  type ServiceContext,
  type ServiceOverrides,
  type ServiceWithPorts,
} from '@backtalk/kit';
import { connectValkey } from '@backtalk/kit/valkey';
import type { collectorSettings } from './config.js';
import { createEvents } from './events.js';
import { collectorFacts, collectorHandlers } from './inputs/facts.js';
import { relinkTurn, unlessGone, type AnswersTaken } from './inputs/link-turn.js';
import { IdleSessions, type InTurn } from './inputs/sessions.js';
import { CollectorLog } from './outputs/collector-log.js';
import { Rebuilder } from './outputs/rebuild.js';
import { StoreWatch } from './outputs/store-watch.js';
import { TurnIndex } from './outputs/turn-index.js';

export type CollectorConfig = ConfigOf<typeof collectorSettings>;

const stopWithinMs = 5_000;

export function createCollector(config: CollectorConfig, overrides: ServiceOverrides = {}): ServiceWithPorts {
  return createService({ name: 'collector', config, overrides, streams: ['TURNS'], stopWithinMs, start });
}

async function start(context: ServiceContext<CollectorConfig>) {
  const { config, clock, logger, metrics, health, lifecycle, broker, blobs, reader, wire, fail } = context;
  // It fails fast while Valkey does not answer: the fact then waits in flight, and no command outlives the connection.
  const valkey = connectValkey({ url: config.valkeyUrl, tls: wire.tls, name: 'collector', logger });
  lifecycle.add('valkey', () => {
    valkey.disconnect();
  });
  health.check('valkey', () => valkey.status === 'ready' || 'valkey cannot be reached');
  const events = createEvents(logger, metrics);
  const index = new TurnIndex(valkey, config.indexKeepMs);
  const stores = new StoreWatch({ broker, valkey, events, clock, natsMonitorUrl: config.natsMonitorUrl });
  stores.start();
  lifecycle.add('store watch', () => stores.stop());
  const log = new CollectorLog(broker, reader, new FactPublisher(broker, { blobs }));
  const parts = { index, log, events };
  const rebuilder = new Rebuilder({
    index,
    reader,
    events,
    clock,
    keptSinceMs: async () => (await log.now()).timeMs - config.indexKeepMs,
    readOld: (name, ids) => unlessGone(() => reader.last(name, ids)),
    noteRefusal: (fact, trace) => log.publishWithheld(fact, trace),
    wasClosed: (owner, session, before) => log.wasClosed(owner, session, before),
    relink: (owner, turn) => relinkTurn(parts, owner, turn),
  });
  // A request that looks for an answer must not miss the answer that arrives at the same moment through another consumer.
  const mutex = new Mutex();
  const inTurn: InTurn = (work) =>
    mutex.run(async () => {
      await rebuilder.ensureReady();
      return work();
    });
  const answersTaken: AnswersTaken = (sequence) => consumer.hasSettled('turnCompleted', sequence);
  const turnsTaken: AnswersTaken = async (sequence) =>
    (await answersTaken(sequence)) && (await consumer.hasSettled('turnOpened', sequence));
  const consumer = consumeFacts({
    broker,
    blobs,
    logger,
    metrics,
    service: 'collector',
    facts: collectorFacts,
    handlers: collectorHandlers(parts, inTurn, { answersTaken, turnsTaken }),
    concurrency: 1,
    ackWaitMs: config.ackWaitMs,
    onFatal: fail,
  });
  await consumer.start();
  lifecycle.add('facts', () => consumer.stop());
  const idle = new IdleSessions(parts, inTurn, { clock, idleMs: config.sessionIdleMs, turnsTaken, fail });
  idle.start();
  lifecycle.add('idle sessions', () => idle.stop());
  return {};
}
