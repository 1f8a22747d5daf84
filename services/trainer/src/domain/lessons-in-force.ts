// What the teacher of one sample is shown: the lessons in force in its scope and its own hindsight, each on one line. Pure.
import { asWording } from '@backtalk/kit';
import { Lesson_State, type BatchClosed, type BatchSample, type Lesson } from '@backtalk/proto/facts';

/** What belongs to one turn; the judge keeps to it as well. */
const hindsightCharsMax = 400;

/**
 * What the teacher of one sample alone is shown, without what a lesson that it is shown asks for already, or asks for in its place: a
 * teacher that is told the same twice answers worse.
 * @param lessons all of them: what a wording belongs to, and what covers it
 */
export function hindsightBeside(hint: string, shown: readonly Lesson[], lessons: readonly Lesson[]): string {
  const known = lessons
    .filter((lesson) =>
      shown.some(({ id }) => [lesson.id, lesson.coveredBy, lesson.waitsFor, lesson.supersededBy].includes(id)),
    )
    .flatMap(({ text, wordings }) => [text, ...wordings]);
  if (known.includes(asWording(hint))) return '';
  const longestFirst = known.toSorted((a, b) => b.length - a.length);
  return longestFirst.reduce(withoutSentences, hint).slice(0, hindsightCharsMax);
}

const sentenceEnd = /[.!?…。！？]["'”’»)]*\s*$/u;

/** Where the wording is whole sentences of what was said. */
function withoutSentences(said: string, wording: string): string {
  const line = said.replace(/\s+/gu, ' ').trim();
  const at = wording === '' ? -1 : line.indexOf(wording);
  const [before, after] = [line.slice(0, at), line.slice(at + wording.length)];
  const isWhole =
    at >= 0 &&
    (at === 0 || sentenceEnd.test(before)) &&
    (after === '' || (sentenceEnd.test(wording) && /^\s/u.test(after)));
  return isWhole ? `${before.trimEnd()}${after}`.trim() : said;
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
