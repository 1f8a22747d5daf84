// The trainer as a whole: what it is made of and in which order it starts and stops.
// In: configuration. Out: a service. While another process leads it stands by; its readiness says so.
import {
  asBacktalkError,
  checkInstallation,
  checkStreams,
  connectBroker,
  createLogger,
  FactPublisher,
  FactReader,
  Health,
  Lifecycle,
  Metrics,
  openBlobStore,
  singleton,
  systemClock,
  type BacktalkError,
  type BlobStore,
  type Broker,
  type Clock,
  type Logger,
  type Service,
  type SingletonOptions,
} from '@backtalk/kit';

import type { TrainerConfig } from './config.js';
import { encodePlan, planFor } from './domain/step-plan.js';
import { trainingConfig } from './domain/training-settings.js';
import { createEvents, type TrainerEvents } from './events.js';
import { trainPolicy, type PolicyParts, type PolicyRule } from './inputs/policy-trainer.js';
import { Ledger } from './outputs/ledger.js';
import { ProgressBoard } from './outputs/progress-board.js';
import { StepStore } from './outputs/step-store.js';
import { TrainingWorker } from './outputs/training-worker.js';
import { TurnLog } from './outputs/turn-log.js';

export interface TrainerOverrides {
  readonly clock?: Clock;
  readonly logger?: Logger;
  readonly lease?: Pick<SingletonOptions, 'ttlMs' | 'everyMs'>;
  /** Told of errors that no waiting mends. */
  readonly fail?: (error: unknown) => void;
}

export interface Trainer extends Service {
  readonly healthPort: number;
}

const stopDeadlineMs = 8_000;
const startAgainMs = 1_000;

export function createTrainer(config: TrainerConfig, overrides: TrainerOverrides = {}): Trainer {
  const { clock = systemClock, fail = () => undefined } = overrides;
  const logger = overrides.logger ?? createLogger({ service: 'trainer', level: config.logLevel });
  const metrics = new Metrics('trainer');
  const events = createEvents(logger, metrics);
  const health = new Health({ address: config.healthAddress, metrics, logger });
  const lifecycle = new Lifecycle(logger);

  async function start(): Promise<void> {
    await health.start();
    lifecycle.add('health', () => health.stop());
    const { natsUrl: url, natsUser: user, natsPassword: password } = config;
    const broker = await connectBroker({ url, user, password, name: `trainer ${config.instance}`, logger });
    lifecycle.add('broker', () => broker.close());
    await checkInstallation(config, broker);
    health.check('broker', () => broker.status() === 'up' || 'the broker is away');
    await checkStreams(broker, ['TURNS', 'WEIGHTS']);
    const blobs = await openBlobStore(config, broker);
    const policies = policyParts({ config, broker, blobs, clock, logger, metrics, events, onFatal: fail }, lifecycle);
    const leader = leaderOf(policies, { broker, config, clock, events, overrides });
    health.check('leading', () => leader.leading || 'another trainer leads');
    lifecycle.add('leadership', () => leader.stop());
    await leader.start();
  }

  return {
    get healthPort() {
      return health.port;
    },
    start,
    stop: () => lifecycle.stopAll(stopDeadlineMs),
  };
}

interface Ground {
  readonly config: TrainerConfig;
  readonly broker: Broker;
  readonly blobs: BlobStore;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly metrics: Metrics;
  readonly events: TrainerEvents;
  readonly onFatal: (error: BacktalkError) => void;
}

function policyParts(ground: Ground, lifecycle: Lifecycle): PolicyParts[] {
  const { config, broker, blobs, clock } = ground;
  const publisher = new FactPublisher(broker, { blobs });
  const reader = new FactReader(broker, blobs);
  const { host, port } = config.trainingWorker;
  const worker = new TrainingWorker({ address: `${host}:${port}`, blobs, stepDeadlineMs: config.stepDeadlineMs });
  lifecycle.add('training worker', () => {
    worker.close();
  });
  const { ackWaitMs, pendingMax, retryMaxMs, sweepEveryMs, sweepGraceMs } = config;
  const shared = {
    ...ground,
    ackWaitMs,
    pendingMax,
    retryMaxMs,
    sweepEveryMs,
    sweepGraceMs,
    rule: ruleOf(config),
    plan: encodePlan(planFor(trainingConfig(config))),
    reader,
    turns: new TurnLog(reader, clock),
    store: new StepStore(blobs),
    worker,
  };
  return config.policies.map((policy) => ({
    ...shared,
    policy,
    ledger: new Ledger(policy, reader, publisher),
    board: new ProgressBoard(broker, policy, clock, (error) => {
      ground.events.progressNotShown(policy, error);
    }),
  }));
}

function ruleOf(config: TrainerConfig): PolicyRule {
  const { rewardVersions, distillVersions } = config;
  const anchorsMax = Math.round(config.effective * config.anchorsPerEffective);
  return { ...config, anchorsMax, staleness: { rewardVersions, distillVersions } };
}

interface LeaderParts extends Pick<Ground, 'broker' | 'config' | 'clock' | 'events'> {
  readonly overrides: TrainerOverrides;
}

/** Leads in the background: the lease is renewed meanwhile. Losing it ends everything that was begun under it. */
function leaderOf(policies: readonly PolicyParts[], { broker, config, clock, events, overrides }: LeaderParts) {
  let leading: Promise<unknown> = Promise.resolve();
  return singleton(broker, 'trainer', config.instance, {
    ...overrides.lease,
    clock,
    onGained: (signal) => {
      events.leadershipChanged(true);
      leading = Promise.all(policies.map((parts) => leadPolicy(parts, signal)));
    },
    onLost: async () => {
      events.leadershipChanged(false);
      await leading;
    },
  });
}

async function leadPolicy(parts: PolicyParts, signal: AbortSignal): Promise<void> {
  const { policy, events, clock, onFatal } = parts;
  for (let failures = 1; !signal.aborted; failures += 1) {
    try {
      await trainPolicy(parts, signal);
      return;
    } catch (thrown) {
      if (signal.aborted) return;
      const error = asBacktalkError(thrown);
      events.ledgerTroubled(policy, error, failures, startAgainMs);
      if (error.retry === 'stop') {
        onFatal(error);
        return;
      }
    }
    await clock.sleep(startAgainMs, signal).catch(() => undefined);
  }
}
