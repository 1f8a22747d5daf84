// Which lesson a wish belongs to, and in which words the lesson is put.
import { inScope, type Speaker } from '@backtalk/kit';
import type { Lesson } from '@backtalk/proto/facts';

import { wordsIn } from './asked-elsewhere.js';
import { isOver, isWordedSo } from './lessons-in-force.js';
import type { LessonScope } from './recipe.js';
import type { NewWish, Relate } from './wish-relation.js';

/** Of what has not ended, and then of what has: one that was said in the same words, else the newest that asks for the same. */
export function lessonOf(
  lessons: readonly Lesson[],
  wish: string,
  speaker: Speaker,
  relate: Relate,
): Lesson | undefined {
  for (const near of inOrder(lessons, speaker)) {
    const home =
      near.find((lesson) => isWordedSo(lesson, wish)) ??
      // By the wording it teaches with, not by each it has seen: meanings must not drift from neighbour to neighbour.
      near.find(({ text }) => relate(text, wish) === 'same');
    if (home !== undefined) return home;
  }
  return undefined;
}

/** What has not ended, and what has; the newest first. */
function inOrder(lessons: readonly Lesson[], speaker: Speaker): readonly Lesson[][] {
  const near = lessons.filter((lesson) => inScope(lesson, speaker)).reverse();
  return [near.filter((lesson) => !isOver(lesson)), near.filter(isOver)];
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
    const near = inOrder(lessons, wish)
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
