// How far a policy has come with one lesson: where its answers stand between those that have nothing of it but by chance, 0, and those of the
// base that is shown what teachers are shown, 1. One version's few answers vary, so the newest measurements are taken together. Pure.
import { Lesson_State, type Lesson, type LessonMeasure } from '@backtalk/proto/facts';

/** A version's few answers say little; those of two say more. */
export const measuresTogether = 2;

/** By the newest measurements; undefined before the first, and where the base that is shown the lesson answers as by chance. */
export function lessonProgress({ measures }: Pick<Lesson, 'measures'>): number | undefined {
  return progressOf(measures.slice(-measuresTogether));
}

/** Progress from which on a lesson that rises no more is learned as far as it goes. */
export const farFrom = 0.5;

/**
 * Whether answers follow a lesson by themselves: learned, and half of the way at least by its newest measurements. Those in which others hid it
 * count only where there is no other. What is covered comes as far as its cover, and is not measured itself.
 */
export function weightsHold({ state, measures, coveredBy }: Pick<Lesson, 'state' | 'measures' | 'coveredBy'>): boolean {
  if (state !== Lesson_State.STATE_LEARNED) return false;
  const seen = measures.filter(({ hidden }) => !hidden);
  return coveredBy !== '' || (lessonProgress({ measures: seen.length > 0 ? seen : measures }) ?? 1) >= farFrom;
}

export function progressOf(measures: readonly LessonMeasure[]): number | undefined {
  const effect = effectOf(measures);
  if (effect === undefined || !(effect > 0)) return undefined;
  const come = meanOf(measures, ({ own, chance }) => own - chance);
  return Math.min(1, Math.max(0, come / effect));
}

/** What there is to learn, in nats an answer: how much being shown the lesson changes the base's answers beyond what any wish does. */
export function effectOf(measures: readonly LessonMeasure[]): number | undefined {
  return measures.length === 0 ? undefined : meanOf(measures, ({ told, chance }) => told - chance);
}

function meanOf(measures: readonly LessonMeasure[], value: (measure: LessonMeasure) => number): number {
  const turns = measures.reduce((sum, measure) => sum + measure.turns, 0);
  return measures.reduce((sum, measure) => sum + measure.turns * value(measure), 0) / Math.max(1, turns);
}
