// The trainer as a whole. One process leads, by a lease, and trains every policy; the others stand by, and their readiness says so.
// Losing the lease ends everything that was begun under it.
import { EnginePool, ResolvedUrls } from '@backtalk/dialects';
import {
  asBacktalkError,
  createService,
  FactPublisher,
  rebuildProgress,
  singleton,
  watchEngineLeases,
  type ServiceContext,
  type ServiceOverrides,
  type ServiceWithPorts,
  type SingletonOptions,
} from '@backtalk/kit';

import { recipeOf, retiredVariables, type TrainerConfig } from './config.js';
import { lexicalRelations } from './domain/lexical-relation.js';
import { planOf } from './domain/step-plan.js';
import type { WishRelations } from './domain/wish-relation.js';
import { createEvents, type TrainerEvents } from './events.js';
import { trainPolicy } from './inputs/policy-trainer.js';
import { sweepFactPayloads } from './inputs/sweep-timer.js';
import type { TrainerTools } from './inputs/trainer-tools.js';
import { WorkerPool } from './inputs/worker-pool.js';
import { AskedRelations } from './outputs/asked-relations.js';
import { Ledger } from './outputs/ledger.js';
import { MeasuredEffects } from './outputs/measured-effects.js';
import { MeasuredProgress } from './outputs/measured-progress.js';
import { PromptRenderer } from './outputs/prompt-renderer.js';
import { ServingEngines } from './outputs/serving-engines.js';
import { SourceLog } from './outputs/source-log.js';
import { StepStore } from './outputs/step-store.js';
import { StepTries } from './outputs/step-tries.js';
import { TrainingWorker } from './outputs/training-worker.js';

export interface TrainerOverrides extends ServiceOverrides {
  readonly lease?: Pick<SingletonOptions, 'ttlMs' | 'everyMs'>;
  /** Settled turns that are held in memory; of the others the log is asked. */
  readonly rememberedMax?: number;
  /** What wishes do to the base; engines are asked when left out. */
  readonly effects?: TrainerTools['effects'];
  /** What versions' answers show of lessons; engines are asked when left out. */
  readonly progress?: TrainerTools['progress'];
}

export type Trainer = ServiceWithPorts;

const stopWithinMs = 8_000;
const startAgainMs = 1_000;

export function createTrainer(config: TrainerConfig, overrides: TrainerOverrides = {}): Trainer {
  return createService({
    name: 'trainer',
    config,
    overrides,
    streams: ['TURNS', 'WEIGHTS'],
    stopWithinMs,
    start: (service) => start(service, overrides),
  });
}

async function start(
  service: ServiceContext<TrainerConfig>,
  { lease, rememberedMax, effects, progress }: TrainerOverrides,
): Promise<Readonly<Record<string, number>>> {
  const { config, logger, metrics, broker, blobs, reader, clock, health, lifecycle } = service;
  const events = createEvents(logger, metrics);
  for (const { variable, recipeName } of retiredVariables()) events.variableRetired(variable, recipeName);
  const recipe = recipeOf(config);
  const plan = planOf(recipe);
  events.recipeRead(config.recipe, plan.digest, recipe);
  const workers = new WorkerPool(
    config.trainingWorkers.map(({ host, port }) => {
      return new TrainingWorker(`${host}:${port}`, blobs, config.stepDeadlineMs, service.wire);
    }),
    clock,
    events,
  );
  lifecycle.add('training workers', () => {
    workers.close();
  });
  const engines = new ServingEngines(await watchEngineLeases(service), config.engineKey);
  lifecycle.add('engine leases', () => {
    engines.stop();
  });
  const turns = new SourceLog(reader, clock);
  const tools: TrainerTools = {
    recipe,
    plan,
    turns,
    store: new StepStore(blobs),
    tries: new StepTries(broker),
    rebuildProgress: (policy) => rebuildProgress(broker, policy),
    workers,
    renderer: new PromptRenderer(engines, clock),
    relations: await startRelations(service, events),
    effects: effects ?? new MeasuredEffects(engines),
    progress: progress ?? new MeasuredProgress(engines, turns, clock),
    events,
  };

  const publisher = new FactPublisher(broker, { blobs });
  const ledgers = config.policies.map((policy) => new Ledger(policy, reader, publisher, rememberedMax));
  // Policies are trained in the background: the lease is renewed meanwhile.
  let training: Promise<unknown> = Promise.resolve();
  const leader = singleton(broker, 'trainer', config.instance, {
    ...lease,
    clock,
    onGained: (signal) => {
      events.leadershipChanged(true);
      training = Promise.all([
        ...ledgers.map((ledger) => keepTraining(ledger, service, tools, signal)),
        sweepFactPayloads(tools, broker, config, clock, signal),
      ]);
    },
    onLost: async () => {
      events.leadershipChanged(false);
      await training;
      events.stepsLeft();
    },
  });
  health.check('leading', () => leader.leading || 'another trainer leads');
  lifecycle.add('leadership', () => leader.stop());
  await leader.start();
  return {};
}

/** A judge that reads is asked; else words decide. */
async function startRelations(service: ServiceContext<TrainerConfig>, events: TrainerEvents): Promise<WishRelations> {
  const { judgeBackend, judgeUrls, judgeDialect: dialect, judgeModel: model, judgeKey, engineKey } = service.config;
  if (judgeBackend !== 'free') return lexicalRelations;
  const { clock, lifecycle } = service;
  const poolEvents = { enginesKnown: () => undefined, engineRefused: events.judgeEngineRefused };
  const urls = judgeUrls.length > 0 ? new ResolvedUrls({ urls: judgeUrls, clock, events: poolEvents }) : undefined;
  const leases = urls === undefined ? await watchEngineLeases(service) : undefined;
  const apiKey = urls === undefined ? engineKey : judgeKey;
  const pool = new EnginePool({ urls, dialect, leases, apiKey, model, events: poolEvents, clock });
  await pool.start();
  lifecycle.add('judge engines', () => pool.stop());
  return new AskedRelations(pool, events);
}

async function keepTraining(
  ledger: Ledger,
  service: ServiceContext<TrainerConfig>,
  tools: TrainerTools,
  leading: AbortSignal,
): Promise<void> {
  for (let failures = 1; !leading.aborted; failures += 1) {
    // A try's own: what it watches and sweeps ends with it, and Node warns of a leak where many policies listen to one.
    const over = new AbortController();
    try {
      await trainPolicy(ledger, service, tools, AbortSignal.any([leading, over.signal]));
      return;
    } catch (thrown) {
      if (leading.aborted) return;
      const error = asBacktalkError(thrown);
      tools.events.ledgerTroubled(ledger.policy, error, failures, startAgainMs);
      if (error.retry === 'stop') return service.fail(error);
    } finally {
      over.abort();
    }
    await service.clock.sleep(startAgainMs, AbortSignal.any([leading])).catch(() => undefined);
  }
}
