// What the teacher of one sample is shown: the lessons in force in its scope and its own hindsight, each on one line. Pure.
import { asWording } from '@backtalk/kit';
import { Lesson_State, type BatchClosed, type BatchSample, type Lesson } from '@backtalk/proto/facts';

/** What belongs to one turn; the judge keeps to it as well. */
const hindsightCharsMax = 400;

/**
 * What the teacher of one sample alone is shown; nothing where a lesson that it is shown asks for it already, is learned before it, or came
 * after it in its place.
 * @param lessons all of them: what a wording belongs to, and what covers it
 */
export function hindsightBeside(hint: string, shown: readonly Lesson[], lessons: readonly Lesson[]): string {
  const wording = asWording(hint);
  const isSaid = lessons.some((lesson) => {
    const isShownHere = shown.some(({ id }) =>
      [lesson.id, lesson.coveredBy, lesson.waitsFor, lesson.supersededBy].includes(id),
    );
    return isShownHere && isWordedSo(lesson, wording);
  });
  return isSaid ? '' : hint.slice(0, hindsightCharsMax);
}

export function isOver({ state }: Lesson): boolean {
  return state === Lesson_State.STATE_RETIRED;
}

/** One of the wordings in which it was heard. */
export function isWordedSo({ text, wordings }: Lesson, wording: string): boolean {
  return text === wording || wordings.includes(wording);
}

/** The hints of one sample's teacher, in the order in which they are shown. */
export function hintsOf(batch: Pick<BatchClosed, 'lessons'>, { lessons, hindsight }: BatchSample): string[] {
  // In the ledger's order, which is the order in which the lessons came into force.
  const shown = batch.lessons.filter(({ id }) => lessons.includes(id)).map(({ text }) => text);
  return hindsight === '' ? shown : [...shown, hindsight];
}
