// What a policy is being taught: hints that say the same are one lesson. An active lesson is never removed, and every change is a
// function of facts, so that a restart computes the same ledger.
import { Lesson_State, type BatchSample, type Lesson } from '@backtalk/proto/facts';
import type { SampleReport } from '@backtalk/proto/weights';
import { createHash } from 'node:crypto';

import { centralWording, inScope, lessonOf, type Speaker, wordingCharsMax } from './lesson-matching.js';
import type { LessonScope } from './recipe.js';

export interface Hint extends Speaker {
  readonly turn: string;
  readonly text: string;
}

const lessonsMax = 256;
const wordingsMax = 16;
/** The teacher's prompt stays short: the newest lessons in scope are shown. */
const shownMax = 8;

export function activeInScope(lessons: readonly Lesson[], speaker: Speaker): Lesson[] {
  const active = lessons.filter((lesson) => lesson.state === Lesson_State.STATE_ACTIVE && inScope(lesson, speaker));
  return active.slice(-shownMax);
}

/** A hint teaches unless it belongs to a lesson that was given up. */
export function teaches(lessons: readonly Lesson[], hint: string, speaker: Speaker): boolean {
  if (hint === '') return false;
  const lesson = lessonOf(lessons, hint, speaker);
  return lesson === undefined || !givenUp(lesson);
}

export function withHints(lessons: readonly Lesson[], hints: readonly Hint[], scope: LessonScope): Lesson[] {
  const ledger = [...lessons];
  for (const hint of hints) {
    const home = lessonOf(ledger, hint.text, hint);
    if (home === undefined) ledger.push(newLesson(hint, scope));
    else ledger[ledger.indexOf(home)] = confirmed(home, hint);
  }
  // Lessons that are not active go first, oldest first.
  const surplus = Math.max(0, ledger.length - lessonsMax);
  const leaving = new Set(ledger.filter(({ state }) => state !== Lesson_State.STATE_ACTIVE).slice(0, surplus));
  return ledger.filter((lesson) => !leaving.has(lesson));
}

function newLesson(hint: Hint, scope: LessonScope): Lesson {
  return {
    id: `lesson_${createHash('sha256').update(hint.turn).digest('hex').slice(0, 16)}`,
    text: centralWording([hint.text]),
    scopeUser: scope === 'policy' ? '' : hint.user,
    state: Lesson_State.STATE_ACTIVE,
    hints: 1,
    divergences: [],
    firstTurn: hint.turn,
    wordings: [],
    scopeTenant: hint.tenant,
    session: '',
    endedBy: '',
    supersededBy: '',
    sinceBatch: 0,
  };
}

/** A correction returned: a learned lesson is active again. One that was given up stays so. */
function confirmed(lesson: Lesson, hint: Hint): Lesson {
  const seen = new Set([...lesson.wordings, lesson.text, hint.text.slice(0, wordingCharsMax)]);
  const wordings = [...seen].slice(0, wordingsMax + 1);
  const text = centralWording(wordings);
  return {
    ...lesson,
    text,
    state: givenUp(lesson) ? lesson.state : Lesson_State.STATE_ACTIVE,
    hints: lesson.hints + 1,
    wordings: wordings.filter((wording) => wording !== text),
  };
}

function givenUp(lesson: Lesson): boolean {
  return lesson.state === Lesson_State.STATE_UNTEACHABLE || lesson.state === Lesson_State.STATE_RETIRED;
}

/** The mean divergence of the samples that were taught each lesson becomes its newest measurement. */
export function afterReport(
  lessons: readonly Lesson[],
  samples: readonly BatchSample[],
  reports: readonly SampleReport[],
  learnedNats: number,
): Lesson[] {
  const trained = new Map(
    reports.filter((report) => report.dropped === '').map((report) => [report.turn, report.divergence]),
  );
  return lessons.map((lesson) => {
    const measured = samples
      .filter((sample) => sample.lessons.includes(lesson.id))
      .flatMap((sample) => trained.get(sample.turn) ?? []);
    if (measured.length === 0) return lesson;
    return afterStep(lesson, measured.reduce((sum, value) => sum + value, 0) / measured.length, learnedNats);
  });
}

const learnedBatches = 2;
/** After this many steps the divergence must have fallen by a third. */
const patienceSteps = 5;
const mustFallBy = 1 / 3;
const divergencesMax = 16;

/** Never makes a lesson active: only a correction does. At or below `learnedNats`, in two batches running, it is learned. */
function afterStep(lesson: Lesson, divergence: number, learnedNats: number): Lesson {
  const divergences = [...lesson.divergences, divergence];
  const kept = divergences.slice(-divergencesMax);
  if (lesson.state !== Lesson_State.STATE_ACTIVE) return { ...lesson, divergences: kept };
  const recent = divergences.slice(-learnedBatches);
  if (recent.length === learnedBatches && recent.every((value) => value <= learnedNats)) {
    return { ...lesson, divergences: kept, state: Lesson_State.STATE_LEARNED };
  }
  // Looked at once, five steps after the first measurement: a lesson that fell once and is later taken up again near its
  // floor has nothing left to fall by. A lesson near its end is not marked either: both would punish success.
  const [first = 0, ...later] = divergences;
  const doesNotMove = later.length === patienceSteps && Math.min(...later) > first * (1 - mustFallBy);
  if (doesNotMove) return { ...lesson, divergences: kept, state: Lesson_State.STATE_UNTEACHABLE };
  return { ...lesson, divergences: kept };
}
