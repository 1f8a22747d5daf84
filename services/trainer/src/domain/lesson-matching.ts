// Which lesson a hint belongs to, and in which words the lesson is put.
import type { Lesson } from '@backtalk/proto/facts';

import { contentStems, likeness } from './same-hint.js';

/** Beyond this a wording tells a story. */
export const wordingCharsMax = 200;

/** Whose samples a lesson may hold for. */
export interface Speaker {
  readonly tenant: string;
  readonly user: string;
}

/** Never another tenant's; lessons of before name none. */
export function inScope({ scopeTenant, scopeUser }: Lesson, { tenant, user }: Speaker): boolean {
  return (scopeTenant === '' || scopeTenant === tenant) && (scopeUser === '' || scopeUser === user);
}

export function lessonOf(lessons: readonly Lesson[], hint: string, speaker: Speaker): Lesson | undefined {
  const stems = contentStems(hint);
  let best: { lesson: Lesson; score: number } | undefined;
  for (const lesson of lessons) {
    if (!inScope(lesson, speaker)) continue;
    // By the wording it teaches with, not by each it has seen: meanings must not drift from neighbour to neighbour.
    const isKnown = hint === lesson.text || lesson.wordings.includes(hint);
    const score = isKnown ? 1 : likeness(contentStems(lesson.text), stems);
    if (score > (best?.score ?? 0)) best = { lesson, score };
  }
  return best?.lesson;
}

/**
 * The wording that is most like all the others: what they have in common, with the least beside it. On the laptop's model the
 * plain core of a correction teaches better than its longest form (84 % against 56 % of hinted answers obey). Of equals, the longest.
 */
export function centralWording(wordings: readonly string[]): string {
  const candidates = [...new Set(wordings.map((wording) => wording.slice(0, wordingCharsMax)))];
  const words = candidates.map((wording) => new Set(wording.toLowerCase().match(/[\p{L}\p{N}']+/gu) ?? []));
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
