// Which lessons are in force for whom, and which of them are shown. Active and learned ones are in force: what is learned and no longer
// shown would be unlearned by the next lesson. Of several that the base takes for one, the clearest is shown. Pure.
import { Lesson_State, type Lesson } from '@backtalk/proto/facts';

/** Whose samples a lesson may hold for. */
export interface Speaker {
  readonly tenant: string;
  readonly user: string;
}

/** The teacher's prompt stays short. */
export const shownMax = 12;
/** 300 tokens, at four characters a token: near enough for a bound, and no tokenizer is needed. */
const shownCharsMax = 1_200;
/** Of a person the ledger holds so many; what holds for a whole tenant counts as one person's. */
export const personLessonsMax = 64;

export function isInForce({ state }: Lesson): boolean {
  return state === Lesson_State.STATE_ACTIVE || state === Lesson_State.STATE_LEARNED;
}

/** In force, in words that teachers are shown, and not waiting for another. */
export function isShown(lesson: Lesson): boolean {
  return lesson.coveredBy === '' && lesson.waitsFor === '' && isInForce(lesson);
}

/** Never another tenant's. One that names none is of an older release, in which no tenant's key could retire it: it holds for none. */
export function inScope({ scopeTenant, scopeUser }: Lesson, { tenant, user }: Speaker): boolean {
  return scopeTenant === tenant && (scopeUser === '' || scopeUser === user);
}

/**
 * The newest that fit, newest last.
 * @param speaker for whom; those of all people where it is left out
 */
export function inForce(lessons: readonly Lesson[], speaker?: Speaker): Lesson[] {
  const shown: Lesson[] = [];
  let room = shownCharsMax;
  for (const lesson of lessons.toReversed()) {
    if (!isShown(lesson) || (speaker !== undefined && !inScope(lesson, speaker))) continue;
    if (lesson.text.length > room) continue;
    room -= lesson.text.length;
    shown.unshift(lesson);
    if (shown.length === shownMax) break;
  }
  return shown;
}

/** Teachers are shown the words of its cover, if it has one. */
export function coverOf(lesson: Lesson, lessons: readonly Lesson[]): Lesson {
  return lessons.find(({ id }) => id === lesson.coveredBy) ?? lesson;
}

/**
 * In force, and no teacher is shown it for want of room beside newer ones.
 * @param speaker for whom; those for whom it holds where that is left out
 */
export function isLeftOut(lesson: Lesson, lessons: readonly Lesson[], speaker?: Speaker): boolean {
  const taught = coverOf(lesson, lessons);
  const { scopeTenant: tenant, scopeUser: user } = taught;
  return isShown(taught) && !inForce(lessons, speaker ?? { tenant, user }).some(({ id }) => id === taught.id);
}
