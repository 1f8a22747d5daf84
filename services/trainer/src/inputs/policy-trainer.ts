// Trains one policy while this process leads: consumes its facts, runs its ledger, sweeps its files. Ends when the signal aborts, or
// with an error that the ledger cannot get over.
import { consumeFacts, type ServiceContext } from '@backtalk/kit';

import type { TrainerConfig } from '../config.js';
import type { Ledger } from '../outputs/ledger.js';
import { BatchClosing } from './batch-closing.js';
import { changedLessons, judgedTurns, stagedVersions } from './deliveries.js';
import { watchLearning } from './learning-switch.js';
import { LedgerLoop } from './ledger-loop.js';
import { PolicyState } from './policy-state.js';
import { Rebuilding } from './rebuilding.js';
import { StepTaking } from './step-taking.js';
import { sweepFiles } from './sweep-timer.js';
import type { TrainerTools } from './trainer-tools.js';

/** Each delivery reads the turn's facts: three small reads. */
const readersMax = 8;
const stopDeadlineMs = 3_000;

export async function trainPolicy(
  ledger: Ledger,
  service: ServiceContext<TrainerConfig>,
  tools: TrainerTools,
  signal: AbortSignal,
): Promise<void> {
  const { config, broker, blobs, clock, logger, metrics, fail } = service;
  const { ackWaitMs } = config;
  const { policy } = ledger;
  const state = new PolicyState(policy);
  const consumption = { broker, blobs, service: 'trainer', durableSuffix: policy, ackWaitMs, logger, metrics, clock };
  const judged = consumeFacts({
    ...consumption,
    facts: ['turnJudged'],
    filter: { turnJudged: { policy } },
    handlers: { turnJudged: judgedTurns(tools, state, ledger) },
    concurrency: readersMax,
    maxHeld: config.pendingMax,
    onFatal: fail,
  });
  const staged = consumeFacts({
    ...consumption,
    facts: ['weightsStaged'],
    filter: { weightsStaged: { policy } },
    handlers: { weightsStaged: stagedVersions(tools, state) },
    concurrency: 1,
    onFatal: fail,
  });
  const changed = consumeFacts({
    ...consumption,
    facts: ['lessonChanged'],
    filter: { lessonChanged: { policy } },
    handlers: { lessonChanged: changedLessons(state) },
    concurrency: 1,
    onFatal: fail,
  });
  const closing = new BatchClosing(tools, state, ledger, config.seed, clock);
  const steps = new StepTaking(tools, state, ledger, closing, clock);
  const rebuilding = new Rebuilding(tools, state, ledger, clock);
  const loop = new LedgerLoop(service, tools, state, { ledger, closing, steps, rebuilding });
  try {
    await watchLearning(broker, state, tools.events, signal);
    await Promise.all([judged.start(), staged.start(), changed.start()]);
    await Promise.all([loop.run(signal), sweepFiles(tools, state, config, clock, signal)]);
  } finally {
    await Promise.all([judged, staged, changed].map((consumer) => consumer.stop(stopDeadlineMs)));
  }
}
