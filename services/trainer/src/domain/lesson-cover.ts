// Of lessons that the base model takes for one wish, teachers are shown one: several wordings beside each other teach worse than the clearest
// alone. Which they are is measured on the base's answers and not read from the words, so that it holds in any language and for any wish that
// the model understands. A lesson that is covered stays in
// force beside its cover; where a person ends one of them, they end together. Pure.
import { isInForce } from '@backtalk/kit';
import { Lesson_State, type Lesson } from '@backtalk/proto/facts';

import { isAskedElsewhere, type Questions } from './asked-elsewhere.js';
import { noSteps } from './lesson-ledger.js';
import { withWaits } from './waiting-lessons.js';
import type { Relate } from './wish-relation.js';

/** What being shown a wish does to the base. Nats an answer; nothing where it was not measured. */
export interface WishEffects {
  /** How much likelier `shown` makes the answers that the base gives when it is shown `told`, than no wish does. */
  gain(shown: string, told: string): number | undefined;
  /** The mean of that for wishes that ask for other things: a sentence more changes any answer. */
  byChance(told: string): number | undefined;
  /** How much likelier being shown a wish makes what the base samples then: how often it does what the wish asks for, and how much that is. */
  effect(wish: string): number | undefined;
  /** How much likelier the answers of who is shown `told` are after their own questions than after others: whether they still answer. */
  matter(told: string): number | undefined;
}

/** Who is shown one does what the other asks, as far as who is shown the other does. */
const alikeFrom = 0.6;
/** A wish that moves the base less than this is not understood: it is like no other. */
const effectMinNats = 2;
/** One that moves the base less than this share of what the strongest of its group does says it too vaguely to be shown. */
const plainFrom = 0.9;
/** A cover stays as long as its answers are nearly as close to what was asked as those of the closest. */
const nearlyClosest = 0.9;
/** Of one scope: each is compared with each. */
const comparedMax = 12;
/** Of these, wishes that were heard once, in an earlier batch. */
const heardBeforeMax = 4;

/**
 * Lessons are grouped by what they do, and each group's clearest covers the others. A wish that was only heard is covered where a lesson asks
 * for it already. What is not compared keeps its cover.
 * @param groups what was compared, newest first
 */
export function withCovers(
  lessons: readonly Lesson[],
  groups: readonly (readonly Lesson[])[],
  effects: WishEffects,
  relate: Relate,
): Lesson[] {
  const coverOf = new Map<string, string>();
  for (const among of groups) {
    const shown = grouped(among.filter(isOwn), effects, relate).map((group) => {
      const covered = among.filter((one) => isInForce(one) && group.some(({ id }) => id === one.coveredBy));
      const cover = clearest([...group, ...covered], effects);
      for (const { id } of [...group, ...covered]) coverOf.set(id, id === cover.id ? '' : cover.id);
      return cover;
    });
    for (const heard of among.filter((lesson) => !isInForce(lesson))) {
      const cover = shown.find((lesson) => isOneWish(lesson, heard, effects, relate));
      coverOf.set(heard.id, cover?.id ?? '');
    }
  }
  return settledCovers(
    lessons.map((lesson) => {
      const coveredBy = coverOf.get(lesson.id) ?? lesson.coveredBy;
      // Steps in the words of another say nothing of how long its own were tried.
      const tookOver = lesson.coveredBy !== '' && coveredBy === '' && isInForce(lesson);
      return { ...lesson, coveredBy, ...(tookOver ? { ...noSteps(), measures: [] } : {}) };
    }),
  );
}

/**
 * Wishes that were heard in one session and again, in whatever words, in another where something else was asked, one of the two just now: the
 * newest of each.
 * @param groups what was compared, newest first
 */
export function recurring(
  groups: readonly (readonly Lesson[])[],
  effects: WishEffects,
  relate: Relate,
  { questions, heard: now }: { readonly questions: Questions; readonly heard: readonly string[] },
): Lesson[] {
  return groups.flatMap((group) => {
    const shown = group.filter(isOwn);
    const heard = group.filter((lesson) => lesson.state === Lesson_State.STATE_HEARD && lesson.session !== '');
    const isNew = (lesson: Lesson) => !shown.some((other) => isOneWish(other, lesson, effects, relate));
    const found: Lesson[] = [];
    for (const [at, lesson] of heard.entries()) {
      const isElsewhere = (other: Lesson) =>
        lesson.cases.some(({ turn }) => isAskedElsewhere(other.cases, turn, questions));
      const isAgain = heard
        .slice(at + 1)
        .filter((other) => isAmong(lesson, now) || isAmong(other, now))
        .some(
          (other) =>
            other.session !== lesson.session && isElsewhere(other) && isOneWish(other, lesson, effects, relate),
        );
      const isFirst = !found.some((other) => isOneWish(other, lesson, effects, relate));
      if (isAgain && isFirst && isNew(lesson)) found.push(lesson);
    }
    return found;
  });
}

function grouped(lessons: readonly Lesson[], effects: WishEffects, relate: Relate): Lesson[][] {
  const groups: Lesson[][] = [];
  for (const lesson of lessons) {
    const home = groups.find(([first]) => first !== undefined && isOneWish(first, lesson, effects, relate));
    if (home === undefined) groups.push([lesson]);
    else home.push(lesson);
  }
  return groups;
}

/**
 * Of each scope in which something was heard: the newest lessons that are shown, what was heard just now, a few heard before, and what is
 * covered, which has its say in who covers it.
 */
export function compared(lessons: readonly Lesson[], heard: readonly string[]): Lesson[][] {
  const scopes = new Map<string, Lesson[]>();
  for (const lesson of lessons.toReversed()) {
    const scope = `${lesson.scopeTenant}.${lesson.scopeUser}`;
    scopes.set(scope, [...(scopes.get(scope) ?? []), lesson]);
  }
  const isNow = (lesson: Lesson) => isAmong(lesson, heard);
  const isHeard = ({ state }: Lesson) => state === Lesson_State.STATE_HEARD;
  return [...scopes.values()].flatMap((scope) => {
    if (!scope.some(isNow)) return [];
    const before = scope.filter((lesson) => isHeard(lesson) && !isNow(lesson)).slice(0, heardBeforeMax);
    const now = scope.filter((lesson) => isOwn(lesson) || (isNow(lesson) && isHeard(lesson)));
    const covered = scope.filter((lesson) => isInForce(lesson) && !isOwn(lesson));
    const chosen = new Set([...now.slice(0, comparedMax), ...before, ...covered].slice(0, comparedMax));
    return chosen.size > 1 ? [scope.filter((lesson) => chosen.has(lesson))] : [];
  });
}

/**
 * A cover that is covered itself hands on what it covers; one that is in force no longer covers nothing; and one is active as long as
 * something that it covers is. What remains takes its turn.
 */
export function settledCovers(lessons: readonly Lesson[]): Lesson[] {
  const known = new Map(lessons.map((lesson) => [lesson.id, lesson]));
  const settled = lessons.map((lesson) => {
    let cover = known.get(lesson.coveredBy);
    const seen = new Set([lesson.id]);
    while (cover !== undefined && cover.coveredBy !== '' && !seen.has(cover.id)) {
      seen.add(cover.id);
      cover = known.get(cover.coveredBy);
    }
    return { ...lesson, coveredBy: cover !== undefined && isOwn(cover) ? cover.id : '' };
  });
  const active = settled.filter(({ state }) => state === Lesson_State.STATE_ACTIVE).map(({ coveredBy }) => coveredBy);
  const isWanted = ({ id, state }: Lesson) => state === Lesson_State.STATE_LEARNED && active.includes(id);
  return withWaits(
    settled.map((lesson) => (isWanted(lesson) ? { ...lesson, state: Lesson_State.STATE_ACTIVE } : lesson)),
  );
}

function isAmong({ text, wordings }: Lesson, heard: readonly string[]): boolean {
  return [text, ...wordings].some((wording) => heard.includes(wording));
}

/** In force, and covered by none: shown to teachers as soon as it waits for no other. */
function isOwn(lesson: Lesson): boolean {
  return lesson.coveredBy === '' && isInForce(lesson);
}

/** In both directions: "in one sentence" does what "briefly" asks, and not the other way round. */
function isOneWish(a: Lesson, b: Lesson, effects: WishEffects, relate: Relate): boolean {
  const isBeside = a.scopeTenant === b.scopeTenant && a.scopeUser === b.scopeUser;
  if (!isBeside || relate(a.text, b.text) === 'opposite') return false;
  return Math.min(explained(a.text, b.text, effects), explained(b.text, a.text, effects)) >= alikeFrom;
}

/** How far `shown` leads to what `told` asks for: 1 as far as being told itself, 0 as far as any other wish. */
function explained(shown: string, told: string, effects: WishEffects): number {
  const chance = effects.byChance(told);
  const own = effects.gain(told, told);
  const gain = effects.gain(shown, told);
  if (chance === undefined || own === undefined || gain === undefined) return 0;
  return own - chance < effectMinNats ? 0 : (gain - chance) / (own - chance);
}

/**
 * Of those that move the base about as far as any of them, the one whose answers stay closest to what was asked: a complaint that names the
 * wish by the way moves it little, and one that the base takes for the question leads it away. Who covers already stays while it does about
 * as well: each change of words is a change of teacher.
 * @param group newest first; a lesson that was given keeps the words in which it was given
 */
function clearest(group: readonly Lesson[], effects: WishEffects): Lesson {
  const given = group.filter(({ session }) => session === '');
  const asked = (given.length > 0 ? given : group).map((lesson) => ({
    lesson,
    effect: effects.effect(lesson.text) ?? 0,
    matter: effects.matter(lesson.text) ?? 0,
  }));
  const most = Math.max(...asked.map(({ effect }) => effect));
  const plain = asked.filter(({ effect }) => effect >= nearTo(most, plainFrom));
  const best = Math.max(...plain.map(({ matter }) => matter));
  const covers = ({ id }: Lesson) => group.some(({ coveredBy }) => coveredBy === id);
  const stays = plain.find(({ lesson, matter }) => covers(lesson) && matter >= nearTo(best, nearlyClosest));
  // Of equals the oldest.
  return (stays ?? plain.reduce((one, other) => (other.matter >= one.matter ? other : one))).lesson;
}

/** Also below 0, where a share of the best is better than the best. */
function nearTo(best: number, share: number): number {
  return best - (1 - share) * Math.abs(best);
}
