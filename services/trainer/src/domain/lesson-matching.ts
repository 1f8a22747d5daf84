// Which lesson a wish belongs to, and in which words the lesson is put.
import { inScope, isInForce, type Speaker } from '@backtalk/kit';
import type { Lesson } from '@backtalk/proto/facts';

import { wordsIn } from './asked-elsewhere.js';
import { isOver, isWordedSo } from './lessons-in-force.js';
import type { LessonScope } from './recipe.js';
import type { NewWish, Relate } from './wish-relation.js';

/**
 * Of what has not ended, and then of what has: one that was said in the same words, else the newest that asks for the same.
 * @param scope of the lessons that wishes become
 */
export function lessonOf(
  lessons: readonly Lesson[],
  { text: wish, ...speaker }: SaidWish,
  relate: Relate,
  scope: LessonScope,
): Lesson | undefined {
  for (const near of inOrder(lessons, speaker, scope)) {
    const home =
      near.find((lesson) => isWordedSo(lesson, wish)) ??
      // By the wording it teaches with, not by each it has seen: meanings must not drift from neighbour to neighbour.
      near.find(({ text }) => relate(text, wish) === 'same');
    if (home !== undefined) return home;
  }
  return undefined;
}

/** Whether what a person says changes it: what holds for their whole tenant stands, unless all that is said there becomes lessons that do. */
export function isTheirs(lesson: Lesson, speaker: Speaker, scope: LessonScope): boolean {
  return inScope(lesson, speaker) && (scope === 'policy' || lesson.scopeUser === speaker.user);
}

/** What is theirs and has not ended; what is in force for them, though not theirs; what is theirs and has ended. The newest of each first. */
function inOrder(lessons: readonly Lesson[], speaker: Speaker, scope: LessonScope): readonly Lesson[][] {
  const near = lessons.filter((lesson) => inScope(lesson, speaker)).reverse();
  const own = near.filter((lesson) => isTheirs(lesson, speaker, scope));
  const shared = near.filter((lesson) => !own.includes(lesson) && isInForce(lesson));
  return [own.filter((lesson) => !isOver(lesson)), shared, own.filter(isOver)];
}

export interface SaidWish extends Speaker {
  readonly text: string;
}

/**
 * What each wish is held against: what was said before it in the same batch, and the lessons in its scope. What an operator ended is left
 * out: by words alone is a wish taken for it, and not heard.
 * @param scope of the lessons that these wishes become
 */
export function newWishes(
  lessons: readonly Lesson[],
  said: readonly SaidWish[],
  scope: LessonScope = 'user',
): NewWish[] {
  return said.map((wish, at) => {
    const isBeside = ({ tenant, user }: Speaker) =>
      tenant === wish.tenant && (scope === 'policy' || user === wish.user);
    const before = said.slice(0, at).filter(isBeside).reverse();
    const near = inOrder(lessons, wish, scope)
      .flat()
      .filter(({ endedBy }) => endedBy !== 'operator');
    return { text: wish.text, beside: [...new Set([...before, ...near].map(({ text }) => text))] };
  });
}

/** The wording that is most like all the others: what they have in common, with the least beside it. Of equals, the longest. */
export function centralWording(wordings: readonly string[]): string {
  const candidates = [...new Set(wordings)];
  const words = candidates.map((wording) => wordsIn(wording));
  let best = { wording: '', score: -1 };
  for (const [index, wording] of candidates.entries()) {
    const score = words.reduce((sum, other, place) => sum + (place === index ? 0 : jaccard(words[index], other)), 0);
    const longer = score === best.score && wording.length > best.wording.length;
    if (score > best.score || longer) best = { wording, score };
  }
  return best.wording;
}

function jaccard(a: ReadonlySet<string> = new Set(), b: ReadonlySet<string> = new Set()): number {
  const shared = [...a].filter((word) => b.has(word)).length;
  return shared / Math.max(1, a.size + b.size - shared);
}
