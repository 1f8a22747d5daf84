// Do learned lessons hold? In: the lessons of a policy, and how likely a candidate and what serves make answers to turns that were once
// corrected. Out: which of those turns are asked now, and whether a lesson is lost. Pure.
//
// A case is a turn whose correction asked for a lesson that is learned since. The base answers it twice: shown every learned lesson, and shown
// all but this one. A version that has learned the lesson, asked without any, leans to the first answer. What is still being learned is shown
// in neither: both would turn on what the version does not do yet, and not on what it is asked about.
import { inForce, type TurnIds } from '@backtalk/kit';
import { Lesson_State, type Lesson } from '@backtalk/proto/facts';
import type { GateVerdict } from './gate.js';
import { mean } from './means.js';

export interface CaseLimits {
  /** Turns of one lesson that are asked of one candidate; 0: none. */
  readonly perLesson: number;
  /** Turns that are asked of one candidate. */
  readonly most: number;
  /** A lesson is held from here on: 0 is the base that is not shown it, 1 the base that is. */
  readonly heldFrom: number;
}

export interface Case extends TurnIds {
  readonly lesson: string;
  /** What the base is shown: in `told` stands the lesson, in `untold` it does not. */
  readonly told: readonly string[];
  readonly untold: readonly string[];
}

/** Logprobs of the two answers, summed, in nats. */
export interface Leaning {
  /** Of what the base answers that is shown the lesson. */
  readonly told: number;
  /** Of what the base answers that is not. */
  readonly untold: number;
}

export interface CaseScores {
  /** Of the base in each of its two prompts. */
  readonly baseTold: Leaning;
  readonly baseUntold: Leaning;
  /** Shown nothing. */
  readonly candidate: Leaning;
  readonly serving: Leaning;
}

export interface AskedCase extends CaseScores {
  readonly of: Case;
}

/** A lesson that changes an answer less than this changes nothing that could be lost there. */
const effectMinNats = 2;
/** A smaller fall is none: answers of one and the same version vary by .1 to .2, and a lesson that rises no more is learned near the bound. */
const fallMin = 0.15;

/**
 * Cases of learned lessons, as evenly among them as can be. Each version is asked those that follow what the version before was asked, lesson
 * after lesson and then turn after turn, so that all are asked in time.
 * @param number of the version that is asked
 */
export function casesFor(lessons: readonly Lesson[], number: number, { perLesson, most }: CaseLimits): Case[] {
  const learned = lessons.filter((lesson) => isLearned(lesson) && lesson.cases.length > 0);
  const count = Math.min(most, perLesson * learned.length);
  const chosen = new Map<string, Case>();
  for (let place = number * count; place < (number + 1) * count; place += 1) {
    const lesson = learned[place % learned.length];
    const ids = lesson?.cases[Math.floor(place / learned.length) % lesson.cases.length];
    const made = lesson === undefined || ids === undefined ? undefined : caseOf(lessons, lesson, ids);
    if (made !== undefined) chosen.set(`${made.lesson} ${made.turn}`, made);
  }
  return [...chosen.values()];
}

function caseOf(lessons: readonly Lesson[], { id }: Lesson, ids: TurnIds): Case | undefined {
  const { turn, tenant, user } = ids;
  const shown = inForce(lessons, { tenant, user }).filter(isLearned);
  const untold = shown.filter((other) => other.id !== id);
  // Covered, out of its scope, or behind too many newer ones: no teacher is shown it, so nothing holds it.
  if (untold.length === shown.length) return undefined;
  return { lesson: id, turn, tenant, user, told: texts(shown), untold: texts(untold) };
}

/** Where a version stands between the base that is not shown a lesson, 0, and the one that is, 1; undefined where they answer alike. */
export function heldShare(leaning: Leaning, { baseTold, baseUntold }: CaseScores): number | undefined {
  const from = lean(baseUntold);
  const effect = lean(baseTold) - from;
  if (!(effect >= effectMinNats)) return undefined;
  return Math.min(1, Math.max(0, (lean(leaning) - from) / effect));
}

/**
 * Refuses a candidate that does not hold a lesson which what serves holds, by the mean of the lesson's cases. What serves holds it as far as
 * a fall that was passed leaves it: a small step below the bound opens no way for a large one.
 */
export function judgeCases(asked: readonly AskedCase[], serving: string, { heldFrom }: CaseLimits): GateVerdict {
  const shares = asked.flatMap((scores): Share[] => {
    const own = heldShare(scores.candidate, scores);
    const other = heldShare(scores.serving, scores);
    return own === undefined || other === undefined ? [] : [{ ...scores.of, own, other }];
  });
  const lost = [...new Set(shares.map(({ lesson }) => lesson))].flatMap((lesson) => {
    const cases = shares.filter((share) => share.lesson === lesson);
    const [own, other] = [mean(cases.map((it) => it.own)), mean(cases.map((it) => it.other))];
    // Written so that NaN is lost.
    return other >= heldFrom - fallMin && !(own >= heldFrom || other - own < fallMin) ? [{ cases, own, other }] : [];
  });
  const measurements: Record<string, number> = {
    cases: shares.length,
    cases_lost: lost.flatMap((it) => it.cases).length,
  };
  if (shares.length > 0) measurements['cases_held'] = mean(shares.map(({ own }) => own));
  const [first] = lost;
  if (first === undefined) return { measurements, why: '' };
  const worst = first.cases.reduce((one, next) => (next.own < one.own ? next : one));
  const why = `cases: ${worst.lesson} is held ${first.own.toFixed(2)}, beside ${first.other.toFixed(2)} of ${serving} (case ${worst.turn})`;
  return { measurements, why };
}

interface Share extends Case {
  readonly own: number;
  readonly other: number;
}

function lean({ told, untold }: Leaning): number {
  return told - untold;
}

function isLearned({ state }: Lesson): boolean {
  return state === Lesson_State.STATE_LEARNED;
}

function texts(lessons: readonly Lesson[]): string[] {
  return lessons.map(({ text }) => text);
}
