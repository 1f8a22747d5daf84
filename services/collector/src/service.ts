// The collector's composition root: which turn a request continues, what a turn's next state is, when a session is over.
import {
  checkInstallation,
  connectBroker,
  consumeFacts,
  createLogger,
  FactPublisher,
  FactReader,
  Health,
  Lifecycle,
  Metrics,
  openBlobStore,
  systemClock,
  type Clock,
  type ConfigOf,
  type Service,
} from '@backtalk/kit';
import { Redis } from 'ioredis';
import type { collectorSettings } from './config.js';
import { createEvents } from './events.js';
import { collectorFacts, collectorHandlers } from './inputs/facts.js';
import { IdleSessions } from './inputs/idle-sessions.js';
import { relinkTurn, type AnswersTaken } from './inputs/link-turn.js';
import { OneAtATime } from './inputs/one-at-a-time.js';
import { brokerNowMs } from './outputs/broker-clock.js';
import { Rebuilder } from './outputs/rebuild.js';
import { TurnIndex } from './outputs/turn-index.js';
import { TurnLog } from './outputs/turn-log.js';

export type CollectorConfig = ConfigOf<typeof collectorSettings>;

export interface CollectorOverrides {
  readonly clock?: Clock;
}

const stopWithinMs = 5_000;
const idleLooksPerIdleTime = 4;
const idleLookAtMostEveryMs = 15_000;

export function createCollector(config: CollectorConfig, overrides: CollectorOverrides = {}): Service {
  const clock = overrides.clock ?? systemClock;
  const logger = createLogger({ service: 'collector', level: config.logLevel });
  const metrics = new Metrics('collector');
  const lifecycle = new Lifecycle(logger);
  return {
    start: async () => {
      const health = new Health({ address: config.healthAddress, metrics, logger });
      await health.start();
      lifecycle.add('health', () => health.stop());
      const { natsUrl: url, natsUser: user, natsPassword: password } = config;
      const broker = await connectBroker({ url, user, password, name: `collector ${config.instance}`, logger });
      lifecycle.add('broker', () => broker.close());
      await checkInstallation(config, broker);
      const redis = openIndexConnection(config.valkeyUrl);
      lifecycle.add('valkey', () => {
        redis.disconnect();
      });
      const events = createEvents(logger, metrics);
      redis.on('error', events.valkeyFailed);
      const blobs = await openBlobStore(config, broker);
      const reader = new FactReader(broker, blobs);
      const index = new TurnIndex(redis, config.indexKeepMs);
      const log = new TurnLog(reader, new FactPublisher(broker, { blobs }));
      const linking = { index, log, events };
      const rebuilder = new Rebuilder({
        index,
        reader,
        events,
        clock,
        keptSinceMs: async () => (await brokerNowMs(broker)) - config.indexKeepMs,
        relink: (owner, turn) => relinkTurn(linking, owner, turn),
      });
      const parts = { ...linking, rebuilder, order: new OneAtATime() };
      const answersTaken: AnswersTaken = async (sequence) => {
        const { settledSequence, pending, unsettled } = await consumer.position('turnCompleted');
        return settledSequence >= sequence || pending + unsettled === 0;
      };
      const consumer = consumeFacts({
        broker,
        blobs,
        logger,
        metrics,
        service: 'collector',
        facts: collectorFacts,
        handlers: collectorHandlers({ ...parts, answersTaken }),
        concurrency: 1,
        ackWaitMs: config.ackWaitMs,
      });
      await consumer.start();
      lifecycle.add('facts', () => consumer.stop());
      const everyMs = Math.min(idleLookAtMostEveryMs, config.sessionIdleMs / idleLooksPerIdleTime);
      const idle = new IdleSessions({
        ...parts,
        clock,
        everyMs,
        idleMs: config.sessionIdleMs,
        brokerNowMs: () => brokerNowMs(broker),
      });
      idle.start();
      lifecycle.add('idle sessions', () => idle.stop());
      health.check('broker', () => broker.status() === 'up' || 'the broker is away');
      health.check('valkey', () => redis.status === 'ready' || 'valkey is away');
    },
    stop: () => lifecycle.stopAll(stopWithinMs),
  };
}

/** Commands fail fast while Valkey is away; facts are then tried again by the broker. */
function openIndexConnection(url: string): Redis {
  return new Redis(url, {
    enableOfflineQueue: true,
    maxRetriesPerRequest: 2,
    commandTimeout: 5_000,
    retryStrategy: (attempt) => Math.min(attempt * 100, 2_000),
  });
}
