// Which lessons a teacher is shown, and in which words. Active and learned ones are in force: what is learned and no longer shown would be
// unlearned by the next lesson.
import { Lesson_State, type BatchClosed, type BatchSample, type Lesson } from '@backtalk/proto/facts';

import { inScope, type Speaker } from './lesson-matching.js';

/** The teacher's prompt stays short. */
const shownMax = 12;
/** 300 tokens, at four characters a token: near enough for a bound, and no tokenizer is needed. */
const shownCharsMax = 1_200;
/** What belongs to one turn; the judge keeps to it as well. */
const hindsightCharsMax = 400;

export function isInForce({ state }: Lesson): boolean {
  return state === Lesson_State.STATE_ACTIVE || state === Lesson_State.STATE_LEARNED;
}

/** The newest that fit, newest last. */
export function inForce(lessons: readonly Lesson[], speaker: Speaker): Lesson[] {
  const shown: Lesson[] = [];
  let room = shownCharsMax;
  for (const lesson of lessons.toReversed()) {
    if (!isInForce(lesson) || !inScope(lesson, speaker)) continue;
    room -= lesson.text.length;
    if (room < 0 || shown.length === shownMax) break;
    shown.unshift(lesson);
  }
  return shown;
}

/** What the teacher of one sample alone is shown; nothing where a lesson that it is shown says the same in the same words. */
export function hindsightBeside(hint: string, shown: readonly Lesson[]): string {
  const said = (lesson: Lesson): boolean => [lesson.text, ...lesson.wordings].includes(asWording(hint));
  return shown.some(said) ? '' : hint.slice(0, hindsightCharsMax);
}

/** The hints of one sample's teacher, in the order in which they are shown. */
export function hintsOf(batch: Pick<BatchClosed, 'lessons'>, { lessons, hindsight }: BatchSample): string[] {
  // In the ledger's order, which is the order in which the lessons came into force.
  const shown = batch.lessons.filter(({ id }) => lessons.includes(id)).map(({ text }) => text);
  return hindsight === '' ? shown : [...shown, hindsight];
}

/** Beyond this a wording tells a story. */
export const wordingCharsMax = 200;

/** On one line; what is too long ends with a whole word. */
export function asWording(text: string): string {
  const line = text.replace(/\s+/gu, ' ').trim();
  return line.length <= wordingCharsMax ? line : line.slice(0, wordingCharsMax).replace(/\s\S*$/u, '');
}
