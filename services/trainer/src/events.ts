// The trainer's business events: each writes its log line and its metrics together. Ids go into the log, never into labels.
import {
  idsOf,
  lessonProgress,
  startSpan,
  type BacktalkError,
  type Logger,
  type Metrics,
  type PayloadSweep,
  type RebuildProgress,
  type Span,
  type Trace,
} from '@backtalk/kit';
import { Lesson_State, type BatchClosed, type BatchSample, type Lesson } from '@backtalk/proto/facts';
import type { TrainingReport } from '@backtalk/proto/weights';

import type { GivingUp } from './domain/batch-fact.js';
import type { Recipe } from './domain/recipe.js';
import type { TrippedGuard } from './domain/step-guards.js';
import type { Waiting } from './domain/weigh-turns.js';

const activities = [
  'standing_by',
  'collecting',
  'paused',
  'storage_full',
  'awaiting_decision',
  'held',
  'queued',
  'training',
  'troubled',
] as const;
export type LedgerActivity = (typeof activities)[number];
export type JudgedOutcome = 'pending' | 'settled_before' | 'forgotten';
export type StepOutcome = 'trained' | GivingUp | 'interrupted';

const lessonStates = {
  heard: Lesson_State.STATE_HEARD,
  active: Lesson_State.STATE_ACTIVE,
  learned: Lesson_State.STATE_LEARNED,
  retired: Lesson_State.STATE_RETIRED,
  unteachable: Lesson_State.STATE_UNTEACHABLE,
} as const;

function createMetrics(metrics: Metrics) {
  const of = (...labels: string[]): string[] => ['policy', ...labels];
  const stepBuckets = [1, 5, 15, 30, 60, 120, 300, 900, 3600];
  const taughtBuckets = [5, 15, 30, 60, 120, 300, 600, 1800, 3600, 14400, 86400];
  const taughtHelp = 'Time from a next state to the version that learned from it being staged for all.';
  const guardsHelp = 'Figures of a step that were out of their bounds and acted, by guard and action (mask, skip).';
  const askedHelp = 'New wishes put to the judge’s model, by outcome: read, or why words decided.';
  const openHelp = 'When the step of the open batch began, seconds since 1970; 0 while there is none.';
  const workerHelp = '1 while a training worker is there and takes no step of another trainer, when it was asked last.';
  const abandonedHelp = 'Batches that were given up: no version comes of them.';
  return {
    leader: metrics.gauge('leader_active', '1 while this process leads.'),
    state: metrics.gauge('ledger_state', '1 for what the ledger of a policy does now.', of('state')),
    judged: metrics.counter('turns_judged_total', 'Judged facts read, by what became of them.', of('outcome')),
    pending: metrics.gauge('turns_pending', 'Turns that wait, by what they bring.', of('kind')),
    batches: metrics.counter('batches_closed_total', 'Facts that close a batch or settle turns, by why.', of('why')),
    samples: metrics.counter('samples_taken_total', 'Turns taken into batches.', of('kind')),
    settled: metrics.counter('turns_settled_total', 'Turns settled without training, by reason.', of('reason')),
    lessons: metrics.gauge('lessons_known', 'Lessons of the ledger, by state.', of('state')),
    version: metrics.gauge('version_number', 'Number of the newest trained version.', of()),
    steps: metrics.counter('steps_total', 'Steps, by how they ended.', of('outcome')),
    seconds: metrics.histogram('step_seconds', 'Time from request to stored version.', stepBuckets, of()),
    measurement: metrics.gauge('step_measurement', 'What the last step measured, by name.', of('name')),
    dropped: metrics.counter('samples_dropped_total', 'Samples that the step left out, by reason.', of('reason')),
    workerUp: metrics.gauge('training_worker_up', workerHelp, ['worker']),
    openSince: metrics.gauge('batch_open_timestamp_seconds', openHelp, of()),
    taught: metrics.histogram('feedback_to_weights_seconds', taughtHelp, taughtBuckets, of()),
    hintsRefused: metrics.counter('hints_refused_total', 'Hints that no teacher is shown, by reason.', of('reason')),
    wishesAsked: metrics.counter('wishes_asked_total', askedHelp, ['outcome']),
    guards: metrics.counter('guards_acted_total', guardsHelp, of('guard', 'action')),
    putOff: metrics.counter('steps_put_off_total', 'Steps that wait to be tried again, by why.', of('code')),
    abandoned: metrics.counter('batches_abandoned_total', abandonedHelp, of('reason')),
    payloadBytes: metrics.gauge('payload_bytes', 'Bytes of payloads of facts in the blob store.'),
    payloadsSwept: metrics.counter('payloads_swept_total', 'Payloads removed whose facts the log holds no more.'),
    swept: metrics.counter('files_swept_total', 'Files of old versions removed from the blob store.', of()),
  };
}

/** A label stays few-valued even if a fact holds something else. */
function label(text: string): string {
  return /^[a-z][a-z0-9_]{0,39}$/.test(text) ? text : 'other';
}

type Numbers = ReturnType<typeof createMetrics>;

export type TrainerEvents = ReturnType<typeof createEvents>;

/** Why training workers drop samples that are sound by themselves. */
const commonReasons = [
  'untaught',
  'missing',
  'too_long',
  'too_large',
  'unknown_ids',
  'template_mismatch',
  'prompt_given_up',
  'control_token',
  'stale',
  'temperature',
] as const;

export function createEvents(logger: Logger, registry: Metrics) {
  const metrics = createMetrics(registry);
  return {
    ...policyEvents(logger, metrics),
    ...turnEvents(logger, metrics),
    ...lessonEvents(logger, metrics),
    ...stepEvents(logger, metrics),
    ...workerEvents(logger, metrics),
  };
}

/** What is trained with, which process leads, and what the ledger of a policy and its files are about. */
function policyEvents(logger: Logger, metrics: Numbers) {
  return {
    recipeRead(name: string, digest: string, recipe: Recipe): void {
      logger.info('recipe_read', { name, digest, recipe });
    },

    variableRetired(variable: string, recipeName: string): void {
      logger.warn('unknown_variable', { variable, instead: `BACKTALK_RECIPE_SET=${recipeName}=…` });
    },

    leadershipChanged(leads: boolean): void {
      metrics.leader.set(leads ? 1 : 0);
      logger.info(leads ? 'leading_started' : 'leading_ended');
    },

    activityChanged(policy: string, activity: LedgerActivity): void {
      for (const each of activities) metrics.state.set({ policy, state: each }, each === activity ? 1 : 0);
    },

    ledgerRead(policy: string, batches: number, newestVersion: number, remembered: number): void {
      logger.info('ledger_read', { policy, batches, newestVersion, remembered });
      metrics.openSince.inc({ policy }, 0);
      metrics.swept.inc({ policy }, 0);
      for (const kind of ['effective', 'anchor', 'rehearsed']) metrics.samples.inc({ policy, kind }, 0);
      // A reason that nothing was dropped for is 0, not absent: boards and alerts can tell the two apart.
      for (const reason of commonReasons) metrics.dropped.inc({ policy, reason }, 0);
      for (const reason of ['step_failed', 'step_skipped', 'abandoned']) metrics.abandoned.inc({ policy, reason }, 0);
      for (const reason of ['template_token', 'control_token']) metrics.hintsRefused.inc({ policy, reason }, 0);
      metrics.version.set({ policy }, newestVersion);
    },

    ledgerTroubled(policy: string, error: BacktalkError, failures: number, againInMs: number): void {
      logger.warn('ledger_troubled', { policy, failures, againInMs, error });
    },

    learningSwitched(policy: string, paused: boolean): void {
      logger.info(paused ? 'learning_paused' : 'learning_resumed', { policy });
    },

    storageFilled(policy: string, full: boolean): void {
      if (full) logger.warn('learning_rests_storage_full', { policy });
      else logger.info('learning_goes_on_storage_free', { policy });
    },

    /** @param heldFor versions burned or batches given up in a row; none: it goes on */
    trainingHeld(policy: string, heldFor: readonly string[]): void {
      if (heldFor.length === 0) logger.info('training_released', { policy });
      else logger.warn('training_held', { policy, heldFor });
    },

    filesSwept(policy: string, files: number): void {
      metrics.swept.inc({ policy }, files);
      if (files > 0) logger.info('files_swept', { policy, files });
    },

    payloadsSwept({ swept, bytes }: PayloadSweep): void {
      metrics.payloadBytes.set(bytes);
      metrics.payloadsSwept.inc(swept);
      if (swept > 0) logger.info('payloads_swept', { payloads: swept, bytes });
    },

    payloadSweepFailed(error: BacktalkError): void {
      logger.warn('payload_sweep_failed', { error });
    },

    sweepFailed(policy: string, error: BacktalkError): void {
      logger.warn('sweep_failed', { policy, error });
    },
  };
}

/** The way of a turn into a batch. */
function turnEvents(logger: Logger, metrics: Numbers) {
  return {
    hintRefused(policy: string, turn: string): void {
      metrics.hintsRefused.inc({ policy, reason: 'template_token' });
      logger.warn('hint_refused', { policy, turn });
    },

    /** The judge's model has said how a new wish stands to earlier ones. */
    wishRead(): void {
      metrics.wishesAsked.inc({ outcome: 'read' });
    },

    /** @param reason a code: what was asked, or answered, stands in no log */
    wishesLeftToWords(reason: string, wishes: number): void {
      metrics.wishesAsked.inc({ outcome: label(reason) }, wishes);
      logger.warn('wishes_left_to_words', { reason, wishes });
    },

    judgeFieldsRefused(fields: readonly string[], model: string): void {
      logger.warn('judge_fields_refused', { fields, model });
    },

    judgeEngineRefused(reason: string): void {
      logger.debug('judge_engine_refused', { reason });
    },

    hintsRefused(policy: string, hints: number): void {
      metrics.hintsRefused.inc({ policy, reason: 'control_token' }, hints);
      logger.warn('hints_refused', { policy, hints, reason: 'control_token' });
    },

    judgedRead(policy: string, outcome: JudgedOutcome): void {
      metrics.judged.inc({ policy, outcome });
    },

    turnsWeighed(policy: string, waiting: Waiting, lessons: readonly Lesson[]): void {
      for (const kind of ['effective', 'idle', 'settled', 'attempts'] as const) {
        metrics.pending.set({ policy, kind }, waiting[kind].length);
      }
      for (const [state, value] of Object.entries(lessonStates)) {
        metrics.lessons.set({ policy, state }, lessons.filter((lesson) => lesson.state === value).length);
      }
    },

    batchClosed(batch: BatchClosed): void {
      const { policy, number, parent, version, why, samples, settled } = batch;
      const kinds = samples.map(kindOf);
      const effective = kinds.filter((kind) => kind === 'effective').length;
      metrics.batches.inc({ policy, why: label(why) });
      for (const kind of kinds) metrics.samples.inc({ policy, kind });
      for (const { reason } of settled) metrics.settled.inc({ policy, reason: label(reason) });
      const counts = { effective, samples: samples.length, settled: settled.length };
      logger.info('batch_closed', { policy, batch: number, parent, version, why, ...counts });
    },
  };
}

/** What becomes of wishes and lessons. */
function lessonEvents(logger: Logger, metrics: Numbers) {
  return {
    wishesNotCompared(policy: string, error: BacktalkError): void {
      logger.warn('wishes_not_compared', { policy, error });
    },

    /** Its person has as many lessons as are held, and a newer wish has its place. */
    lessonPushedOut({ policy, number }: BatchClosed, { id, hints }: Lesson): void {
      logger.warn('lesson_pushed_out', { policy, batch: number, lesson: id, hints });
    },

    lessonsNotMeasured(policy: string, version: string, error: BacktalkError): void {
      logger.warn('lessons_not_measured', { policy, version, error });
    },

    lessonMeasured(policy: string, version: string, { id, state, steps, measures }: Lesson): void {
      const { turns, chance, told, own } = measures.at(-1) ?? {};
      const progress = lessonProgress({ measures });
      logger.info('lesson_measured', { policy, version, lesson: id, state, steps, turns, chance, told, own, progress });
    },

    lessonServed(policy: string, seconds: number): void {
      metrics.taught.observe({ policy }, seconds);
    },
  };
}

function kindOf({ question, effective }: BatchSample): 'rehearsed' | 'effective' | 'anchor' {
  if (question > 0) return 'rehearsed';
  return effective ? 'effective' : 'anchor';
}

/** The way of a batch into a version. */
function workerEvents(logger: Logger, metrics: Numbers) {
  const seen = new Map<string, string>();
  return {
    /** @param code why it takes no step; empty: it does */
    workerSeen(worker: string, code: string): void {
      const before = seen.get(worker);
      seen.set(worker, code);
      metrics.workerUp.set({ worker }, code === '' ? 1 : 0);
      if (before === code || (before === undefined && code === '')) return;
      if (code === '') logger.info('training_worker_back', { worker });
      else logger.warn('training_worker_away', { worker, code });
    },
  };
}

function stepEvents(logger: Logger, metrics: Numbers) {
  const open = new Set<string>();
  return {
    stepStarted({ policy, number, version, samples }: BatchClosed): void {
      // A step that is tried again counts from its first try in this process.
      if (!open.has(policy)) metrics.openSince.setToCurrentTime({ policy });
      open.add(policy);
      logger.info('step_started', { policy, batch: number, version, samples: samples.length });
    },

    /** A step that belongs to no known trace, such as one from before traces were stored, is not followed. */
    stepSpan(batch: BatchClosed, parent: Trace | undefined): Span | undefined {
      if (parent === undefined) return undefined;
      return startSpan('step', { kind: 'internal', parent, attributes: idsOf(batch) });
    },

    /** This process leads no longer: what it showed of its steps would hold until it ends, whatever the new leader does. */
    stepsLeft(): void {
      for (const policy of open) metrics.openSince.set({ policy }, 0);
      open.clear();
      metrics.measurement.reset();
    },

    stepEnded(batch: BatchClosed, outcome: StepOutcome): void {
      metrics.steps.inc({ policy: batch.policy, outcome });
      if (outcome !== 'interrupted' && open.delete(batch.policy)) metrics.openSince.set({ policy: batch.policy }, 0);
      if (outcome !== 'trained') logger.warn('step_ended', { policy: batch.policy, batch: batch.number, outcome });
    },

    versionRebuilt(policy: string, { version, state, done, of, detail }: RebuildProgress): void {
      logger.info('version_rebuilt', { policy, version, state, done, of, detail });
    },

    /** The same step later again: what keeps it is no failure of its own. */
    stepPutOff(batch: BatchClosed, code: string): void {
      metrics.putOff.inc({ policy: batch.policy, code: label(code) });
      this.stepEnded(batch, 'interrupted');
    },

    /** `code`: of its last failure; empty where an operator said so. */
    batchAbandoned({ policy, number, samples }: BatchClosed, reason: GivingUp, code: string): void {
      metrics.abandoned.inc({ policy, reason });
      logger.error('batch_abandoned', { policy, batch: number, samples: samples.length, reason, code });
    },

    guardActed({ policy, number }: BatchClosed, { guard, action, why }: TrippedGuard): void {
      metrics.guards.inc({ policy, guard, action });
      logger.warn('guard_acted', { policy, batch: number, guard, action, why });
    },

    /** Of a step that was taken, also where no version comes of it. */
    stepMeasured({ policy }: BatchClosed, { measurements, samples }: TrainingReport): void {
      for (const name of Object.keys(measurements))
        metrics.measurement.set({ policy, name: label(name) }, measurements[name] ?? Number.NaN);
      for (const { dropped } of samples) if (dropped !== '') metrics.dropped.inc({ policy, reason: label(dropped) });
    },

    versionTrained(batch: BatchClosed, versionNumber: number, report: TrainingReport, seconds: number): void {
      const { policy, number, version } = batch;
      metrics.version.set({ policy }, versionNumber);
      metrics.seconds.observe({ policy }, seconds);
      const dropped = report.samples.filter((sample) => sample.dropped !== '').length;
      logger.info('version_trained', { policy, batch: number, version, seconds, dropped, ...report.measurements });
    },
  };
}
