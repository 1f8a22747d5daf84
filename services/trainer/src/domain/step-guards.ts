// Which figures of a step act, and how. In: the report of a step that was taken. Out: whether its version may be published at all, and
// which guard says no. Pure; what a worker does not report trips nothing. The gate's guards, which look at answers, are the publisher's.
import type { BatchClosed } from '@backtalk/proto/facts';
import type { TrainingConfig } from '@backtalk/proto/training';
import type { SampleReport, TrainingReport } from '@backtalk/proto/weights';

import type { Recipe } from './recipe.js';
import { isOfTurn } from './rehearsal.js';

/** `mask`: the worker left out the terms that weigh by v. `skip`: no version comes of the step; its samples are settled by name. */
type GuardAction = 'mask' | 'skip';

export interface TrippedGuard {
  readonly guard: string;
  readonly action: GuardAction;
  /** The guard's name, a colon, and what was measured against which bound. */
  readonly why: string;
}

interface Measured {
  readonly value: number;
  readonly bound: number;
  readonly says: string;
}

interface Guard {
  readonly name: string;
  readonly action: GuardAction;
  /** Nothing where it holds, or was not measured. */
  readonly tripped: (step: StepFigures, bounds: GuardBounds) => Measured | undefined;
}

type GuardBounds = Pick<
  Recipe,
  'tooLongShareMax' | 'templateMismatchShareMax' | 'stepBoundNats' | 'essMin' | 'maskedShareMax'
>;

/** A step that is repeated, or replayed with other numbers, is held to its own plan; how many samples may be lost is the operator's word of now. */
export function guardBounds(
  { stepBound, essMin, maskedShareMax }: TrainingConfig,
  { tooLongShareMax, templateMismatchShareMax }: Recipe,
): GuardBounds {
  return { tooLongShareMax, templateMismatchShareMax, stepBoundNats: stepBound, essMin, maskedShareMax };
}

interface StepFigures {
  readonly measurements: Readonly<Record<string, number>>;
  readonly batch: Pick<BatchClosed, 'samples'>;
  readonly samples: readonly SampleReport[];
}

/** In the order in which they are asked: the first that says `skip` is the reason. */
const guards: readonly Guard[] = [
  {
    name: 'too_long',
    action: 'skip',
    tripped: (step, { tooLongShareMax: bound }) =>
      above(
        dropped(step, 'too_long') / Math.max(1, step.batch.samples.filter(isOfTurn).length),
        bound,
        'of the samples are too long',
      ),
  },
  {
    name: 'template_mismatch',
    action: 'skip',
    tripped: (step, { templateMismatchShareMax: bound }) => {
      const ofTurns = step.batch.samples.filter(isOfTurn);
      const hinted = ofTurns.filter(({ lessons, hindsight }) => lessons.length > 0 || hindsight !== '');
      const share = dropped(step, 'template_mismatch') / Math.max(1, hinted.length);
      return above(share, bound, 'of the hinted samples lost their teacher');
    },
  },
  {
    name: 'nothing_trained',
    action: 'skip',
    tripped: ({ measurements, samples }) => {
      // Exactly 0: where any term of any sample is left, so is some gradient.
      if (measurements['gradient_norm'] !== 0) return undefined;
      const reasons = [...new Set(samples.map((sample) => sample.dropped))].filter((reason) => reason !== '');
      return { value: 0, bound: 0, says: ['gradient of all samples', ...reasons].join(', ') };
    },
  },
  {
    name: 'kl_step',
    action: 'skip',
    tripped: ({ measurements }, { stepBoundNats: bound }) =>
      bound === 0 ? undefined : above(measurements['kl_step'], bound, 'nats an answer, and shrinking did not help'),
  },
  {
    name: 'ess',
    action: 'mask',
    tripped: ({ measurements }, { essMin: bound }) => byWorker(measurements, 'ess', bound),
  },
  {
    name: 'masked_share',
    action: 'mask',
    tripped: ({ measurements }, { maskedShareMax: bound }) => byWorker(measurements, 'masked_share', bound),
  },
];

/** Every guard that tripped; one with action `skip` says that no version may come of the step. */
export function trippedGuards(
  batch: Pick<BatchClosed, 'samples'>,
  report: TrainingReport | undefined,
  bounds: GuardBounds,
): TrippedGuard[] {
  const step = { measurements: report?.measurements ?? {}, batch, samples: report?.samples ?? [] };
  return guards.flatMap(({ name, action, tripped }) => {
    const measured = tripped(step, bounds);
    if (measured === undefined) return [];
    const { value, bound, says } = measured;
    return { guard: name, action, why: `${name}: ${value.toPrecision(3)} ${says} (bound ${bound})` };
  });
}

function dropped({ samples }: StepFigures, reason: string): number {
  return samples.filter((sample) => sample.dropped === reason).length;
}

function above(value: number | undefined, bound: number, says: string): Measured | undefined {
  return value === undefined || value <= bound ? undefined : { value, bound, says };
}

/** The worker acts on these before it moves anything, and reports that it did. */
function byWorker(measurements: Readonly<Record<string, number>>, name: string, bound: number): Measured | undefined {
  if (measurements[`guard_${name}`] === undefined) return undefined;
  return { value: measurements[name] ?? Number.NaN, bound, says: 'so that only exact divergences were taken' };
}
