// How far each lesson has come, by what steps measured and by what became of their versions.
import { isInForce } from '@backtalk/kit';
import { Lesson_State, type BatchSample, type Lesson } from '@backtalk/proto/facts';
import type { SampleReport } from '@backtalk/proto/weights';

/**
 * The mean divergence of the samples that were taught a lesson becomes its newest measurement. A sample that was shown hindsight beside
 * its lessons measures none of them: what it still lacks may be the hindsight.
 * What is covered comes as far as its cover.
 * @param batch number of the batch that the reports are of
 */
export function afterReport(
  lessons: readonly Lesson[],
  batch: { readonly number: number; readonly samples: readonly BatchSample[] },
  reports: readonly SampleReport[],
  learnedNats: number,
): Lesson[] {
  const trained = new Map(
    reports.filter((report) => report.dropped === '').map((report) => [report.turn, report.divergence]),
  );
  const moved = lessons.map((lesson) => {
    const shown = lesson.coveredBy || lesson.id;
    const measured = batch.samples
      .filter((sample) => sample.lessons.includes(shown) && sample.hindsight === '')
      .flatMap((sample) => trained.get(sample.turn) ?? []);
    if (measured.length === 0) return lesson;
    const mean = measured.reduce((sum, value) => sum + value, 0) / measured.length;
    const divergences = [...lesson.divergences, mean].slice(-divergencesMax);
    const state = lesson.state === Lesson_State.STATE_ACTIVE ? stateAfter(divergences, learnedNats) : lesson.state;
    return { ...lesson, divergences, state, sinceBatch: state === lesson.state ? lesson.sinceBatch : batch.number };
  });
  return moved.map((lesson) => {
    const cover = moved.find(({ id }) => id === lesson.coveredBy);
    return cover === undefined || !isInForce(lesson) ? lesson : { ...lesson, state: cover.state };
  });
}

const divergencesMax = 16;
const learnedBatches = 2;
/** In this many steps the divergence must fall by a third, whenever they are counted from. */
const patienceSteps = 5;
const mustFallTo = 2 / 3;

/** Far below where it was: what is left of it is how the teacher's answers vary. */
const farFallenTo = 1 / 4;
const stillFallingTo = 0.8;

/**
 * Of an active lesson. Learned: small in two batches running; or far below where it was and falling no more, since further steps would make
 * answers alike and no better; or, after longer, well below.
 */
function stateAfter(divergences: readonly number[], learnedNats: number): Lesson_State {
  const recent = divergences.slice(-learnedBatches);
  if (recent.length === learnedBatches && recent.every((value) => value <= learnedNats))
    return Lesson_State.STATE_LEARNED;
  if (hasSettled(divergences)) return Lesson_State.STATE_LEARNED;
  const [first = 0, ...later] = divergences.slice(-patienceSteps - 1);
  const lowest = Math.min(...later);
  if (later.length < patienceSteps || lowest <= first * mustFallTo) return Lesson_State.STATE_ACTIVE;
  const hasCome = lowest <= Math.max(...divergences) * mustFallTo;
  return hasCome ? Lesson_State.STATE_LEARNED : Lesson_State.STATE_UNTEACHABLE;
}

function hasSettled(divergences: readonly number[]): boolean {
  const [before = Infinity, last = Infinity] = divergences.slice(-learnedBatches);
  const isFar = Math.max(before, last) <= Math.max(...divergences) * farFallenTo;
  return divergences.length > learnedBatches && isFar && last >= before * stillFallingTo;
}

/** What the line of versions says of a batch. */
export interface VersionsSince {
  /** The version that it made is burned, or built upon a burned one. */
  isUndone(batch: number): boolean;
  versionsAfter(batch: number): number;
}

const lookAgainVersions = 20;

/** A learned lesson whose step was undone is to be learned again; one that could not be taught is looked at again after a while. */
export function afterVersions(lessons: readonly Lesson[], line: VersionsSince, batch: number): Lesson[] {
  return lessons.map((lesson) => {
    const { state, sinceBatch } = lesson;
    const isForgotten = state === Lesson_State.STATE_LEARNED && line.isUndone(sinceBatch);
    const isDue = state === Lesson_State.STATE_UNTEACHABLE && line.versionsAfter(sinceBatch) >= lookAgainVersions;
    if (!isForgotten && !isDue) return lesson;
    return { ...lesson, state: Lesson_State.STATE_ACTIVE, divergences: [], sinceBatch: batch };
  });
}
