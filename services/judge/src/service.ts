// The judge as a whole: what it is made of and in which order it starts and stops. In: configuration. Out: a service.
// It has no state of its own: what it has in hand when it dies is delivered to the next judge.
import {
  checkInstallation,
  checkStreams,
  connectBroker,
  consumeFacts,
  createLogger,
  FactPublisher,
  FactReader,
  Health,
  jobQueue,
  jobWorker,
  kvBucket,
  Lifecycle,
  Metrics,
  openBlobStore,
  systemClock,
  watchLeases,
  type BackOff,
  type BacktalkError,
  type BlobStore,
  type Broker,
  type Clock,
  type Logger,
  type Service,
} from '@backtalk/kit';
import { Routes } from '@backtalk/proto/weights';
import type { Backend, JudgeConfig } from './config.js';
import type { Reader } from './domain/small-model/reader.js';
import { createEvents, type JudgeEvents } from './events.js';
import { Ballots, voteJob, voteTriesMax } from './inputs/ballots.js';
import { feedbackGiven } from './inputs/feedback-given.js';
import type { JudgeParts } from './inputs/parts.js';
import { sessionClosed } from './inputs/session-closed.js';
import { turnContinued } from './inputs/turn-continued.js';
import { BallotBox } from './outputs/ballot-box.js';
import { EnginePool } from './outputs/engine-pool.js';
import { FreeVoter } from './outputs/free-voter.js';
import { Judgements } from './outputs/judgements.js';
import { readCalibrationTable, readReader, scoredPrompts } from './outputs/labelled-set.js';
import { ResolvedUrls } from './outputs/resolved-urls.js';
import { ScoredVoter } from './outputs/scored-voter.js';
import { TurnLog } from './outputs/turn-log.js';
import { VersionTimes } from './outputs/version-times.js';
import type { Voter } from './outputs/voter.js';

export interface JudgeOverrides {
  readonly clock?: Clock;
  readonly logger?: Logger;
  /** In place of that of the configured backend. */
  readonly voter?: Voter;
  /** How fast failed facts and jobs come again. */
  readonly backOff?: BackOff;
  /** Told of errors that no waiting mends. */
  readonly fail?: (error: unknown) => void;
}

export interface Judge extends Service {
  readonly healthPort: number;
}

/** What every step of the start is given. */
interface Building {
  readonly config: JudgeConfig;
  readonly overrides: JudgeOverrides;
  readonly logger: Logger;
  readonly metrics: Metrics;
  readonly clock: Clock;
  readonly events: JudgeEvents;
  readonly lifecycle: Lifecycle;
  readonly health: Health;
  readonly onFatal: (error: BacktalkError) => void;
}

const stopDeadlineMs = 9_000;
/** Votes in hand may end; what is left is cast again by the next judge. */
const votesDeadlineMs = 2_000;
const factsDeadlineMs = 1_000;

export function createJudge(config: JudgeConfig, overrides: JudgeOverrides = {}): Judge {
  const { clock = systemClock, fail = () => undefined } = overrides;
  const logger = overrides.logger ?? createLogger({ service: 'judge', level: config.logLevel });
  const metrics = new Metrics('judge');
  const lifecycle = new Lifecycle(logger);
  const health = new Health({ address: config.healthAddress, metrics, logger });
  const events = createEvents(logger, metrics);
  const building = { config, overrides, logger, metrics, clock, events, lifecycle, health, onFatal: fail };
  return {
    get healthPort() {
      return health.port;
    },
    start: () => start(building),
    stop: () => lifecycle.stopAll(stopDeadlineMs),
  };
}

async function start(building: Building): Promise<void> {
  const { config, logger, health, lifecycle, clock, events } = building;
  await health.start();
  lifecycle.add('health', () => health.stop());
  const { natsUrl: url, natsUser: user, natsPassword: password, instance } = config;
  const broker = await connectBroker({ url, user, password, name: `judge ${instance}`, logger });
  lifecycle.add('broker', () => broker.close());
  await checkInstallation(config, broker);
  health.check('broker', () => broker.status() === 'up' || 'the broker is away');
  await checkStreams(broker, ['TURNS']);
  const blobs = await openBlobStore(config, broker);
  const reader = new FactReader(broker, blobs);
  const box = await startPool(building, broker);
  const versionTimes = new VersionTimes(kvBucket(broker, 'routes', Routes));
  await versionTimes.start();
  lifecycle.add('routes', () => {
    versionTimes.stop();
  });
  const parts: JudgeParts = {
    config,
    clock,
    events,
    box,
    versionTimes,
    reader: readerOf(config.backend),
    log: new TurnLog(reader),
    judgements: new Judgements(reader, new FactPublisher(broker, { blobs })),
    ballots: box === undefined ? undefined : await startBallots(building, box),
  };
  await startConsumer(building, broker, blobs, parts);
}

/** Nothing where evidence alone decides. */
async function startPool(building: Building, broker: Broker): Promise<BallotBox | undefined> {
  const { config, overrides, clock, events, lifecycle, health } = building;
  const voter = overrides.voter ?? voterOf(config.backend);
  if (voter === undefined) return undefined;
  const { engineUrls } = config;
  const urls = engineUrls.length > 0 ? new ResolvedUrls({ urls: engineUrls, clock, events }) : undefined;
  const leases = urls === undefined ? await watchLeases(broker, 'loader') : undefined;
  const { engineDialect: dialect, engineKey: apiKey, model, voteWaitMs } = config;
  const pool = new EnginePool({ urls, dialect, leases, apiKey, model, events });
  await pool.start();
  lifecycle.add('engines', () => pool.stop());
  health.check('engines', () => pool.size > 0 || 'no engine of the judge pool is known');
  return new BallotBox({ pool, voter, voteWaitMs, clock, events });
}

function voterOf(backend: Backend): Voter | undefined {
  switch (backend) {
    case 'scored':
      return new ScoredVoter(scoredPrompts(), readCalibrationTable());
    case 'free':
      return new FreeVoter();
    case 'rules':
      return undefined;
  }
}

/** Only models too small to read are helped by words that are counted. */
function readerOf(backend: Backend): Reader | undefined {
  return backend === 'scored' ? readReader() : undefined;
}

async function startBallots(building: Building, box: BallotBox): Promise<Ballots> {
  const { config, overrides, logger, metrics, clock, events, lifecycle, onFatal } = building;
  const { valkeyUrl, votes, voteConcurrency: concurrency, queueCheckMs: checkEveryMs, ackWaitMs: lockMs } = config;
  // A queue for each process: only the process that has a turn in hand knows what its jobs are about.
  const shared = { name: `judge-votes-${config.instance}`, valkeyUrl, schema: voteJob, logger, clock };
  const queue = jobQueue({ ...shared, attempts: voteTriesMax });
  lifecycle.add('votes queue', () => queue.close());
  const ballots = new Ballots({ queue, box, votes, checkEveryMs, clock, events });
  ballots.start();
  lifecycle.add('queue check', () => {
    ballots.stop();
  });
  const handler = (job: Parameters<Ballots['handle']>[0]) => ballots.handle(job);
  const backOff = overrides.backOff ?? { firstMs: 500, mostMs: 15_000 };
  const worker = jobWorker({ ...shared, handler, concurrency, lockMs, backOff, metrics, onFatal });
  await worker.start();
  lifecycle.add('votes', () => worker.stop(votesDeadlineMs));
  return ballots;
}

async function startConsumer(building: Building, broker: Broker, blobs: BlobStore, parts: JudgeParts): Promise<void> {
  const { config, overrides, logger, metrics, clock, lifecycle, onFatal } = building;
  const { ackWaitMs, turnsInHand: concurrency } = config;
  const { backOff } = overrides;
  const consumer = consumeFacts({
    broker,
    blobs,
    ackWaitMs,
    concurrency,
    logger,
    metrics,
    clock,
    onFatal,
    ...(backOff === undefined ? {} : { backOff }),
    service: 'judge',
    facts: ['turnContinued', 'feedbackGiven', 'sessionClosed'],
    handlers: {
      turnContinued: (fact, delivery) => turnContinued(parts, fact, delivery),
      feedbackGiven: (fact) => feedbackGiven(parts, fact),
      sessionClosed: (fact, delivery) => sessionClosed(parts, fact, delivery),
    },
  });
  await consumer.start();
  lifecycle.add('facts', () => consumer.stop(factsDeadlineMs));
}
