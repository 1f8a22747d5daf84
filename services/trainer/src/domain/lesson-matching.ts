// Which lesson does a hint belong to, and in which words is the lesson put?
// In: a hint, its user, the ledger. Out: the lesson that says the same in the same scope, or none; the wording to teach with.
// Never changes the ledger.
import type { Lesson } from '@backtalk/proto/facts';

import { contentStems } from './content-stems.js';
import { likeness, saysTheSame } from './same-hint.js';

// The longest wording teaches best, up to here: beyond, it tells a story.
export const WORDING_CHARS_MAX = 200;

export function inScope(lesson: Lesson, user: string): boolean {
  return lesson.scopeUser === '' || lesson.scopeUser === user;
}

export function lessonOf(lessons: readonly Lesson[], hint: string, user: string): Lesson | undefined {
  const stems = contentStems(hint);
  let best: { lesson: Lesson; score: number } | undefined;
  for (const lesson of lessons) {
    if (!inScope(lesson, user)) continue;
    const score = likenessToLesson(lesson, stems, hint);
    if (score > (best?.score ?? 0)) best = { lesson, score };
  }
  return best?.lesson;
}

// A lesson is compared by the wording it teaches with, not by each it has seen: meanings must not drift from neighbour to neighbour.
function likenessToLesson(lesson: Lesson, stems: ReadonlySet<string>, hint: string): number {
  if (hint === lesson.text || lesson.wordings.includes(hint)) return 1;
  const own = contentStems(lesson.text);
  return saysTheSame(own, stems) ? likeness(own, stems) : 0;
}

export function bestWording(present: string, other: string): string {
  if (present === '') return other.slice(0, WORDING_CHARS_MAX);
  if (other.length > WORDING_CHARS_MAX) return present;
  return other.length > present.length ? other : present;
}
