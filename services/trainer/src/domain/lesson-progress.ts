// How far is a lesson?
// In: a lesson and the divergence to its teacher that the last step measured (nats an answer). Out: the lesson with its new state.
// Never makes a lesson active: only a correction does.
import { Lesson_State, type Lesson } from '@backtalk/proto/facts';

const learnedBatches = 2;
/** After this many steps the divergence must have fallen by a third. */
const patienceSteps = 5;
const mustFallBy = 1 / 3;
const divergencesMax = 16;

/** @param learnedNats at or below this, in two batches running, a lesson is learned */
export function afterStep(lesson: Lesson, divergence: number, learnedNats: number): Lesson {
  const divergences = [...lesson.divergences, divergence];
  const kept = divergences.slice(-divergencesMax);
  if (lesson.state !== Lesson_State.STATE_ACTIVE) return { ...lesson, divergences: kept };
  const recent = divergences.slice(-learnedBatches);
  if (recent.length === learnedBatches && recent.every((value) => value <= learnedNats)) {
    return { ...lesson, divergences: kept, state: Lesson_State.STATE_LEARNED };
  }
  if (doesNotMove(divergences)) return { ...lesson, divergences: kept, state: Lesson_State.STATE_UNTEACHABLE };
  return { ...lesson, divergences: kept };
}

/**
 * Looked at once, five steps after the first measurement: a lesson that fell once and is later taken up again near its floor has
 * nothing left to fall by. A lesson near its end is not marked either: both would punish success.
 */
function doesNotMove(divergences: readonly number[]): boolean {
  if (divergences.length !== patienceSteps + 1) return false;
  const first = divergences[0] ?? 0;
  return Math.min(...divergences.slice(1)) > first * (1 - mustFallBy);
}
