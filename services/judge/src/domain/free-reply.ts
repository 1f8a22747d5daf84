// What a judge's model wrote, as a vote. In: the text of its answer, and whether it came to its end. Out: the grade and the hint, or
// nothing: where the text leaves a doubt, no vote is better than a wrong one. Thoughts, copies of foreign pieces and hints hold no grade.
// Pure; work is bounded by the length that is read.
import JSON5 from 'json5';
import { isJsonObject } from '@backtalk/kit';
import { answerIn } from './free-thoughts.js';
import { gradeIn, gradeOfLine, signedGradesIn } from './grade-words.js';
import type { Verdict } from './verdict-value.js';

export interface FreeReply {
  readonly text: string;
  /** False where the engine cut it: at its length, or by a filter. */
  readonly isWhole: boolean;
}

export interface FreeAnswer {
  readonly verdict: Verdict;
  /** Empty when the model saw none. */
  readonly hint: string;
}

const hintSpan = /\[\s*HINT[_ ]START\s*\]([\s\S]*?)\[\s*HINT[_ ]END\s*\]/gi;
const foreignSpan = /<<([0-9a-f]{16}) [^<>\n]{0,80}>>[\s\S]*?(?:<<\1 end>>|$)/g;
/** Written around text, they mean nothing. */
const invisible = /[\u200b\u200e\u200f\u202a-\u202e\u2066-\u2069\ufeff]/g;
/** All but the box of GLM. */
const specialToken = /<[|\uff5c](?!begin_of_box|end_of_box)[^<>|\uff5c\n]{1,40}[|\uff5c]>|<\/?s>/g;
const noHint =
  /^\W{0,2}(?:none|no hint|n\/a|nothing|empty|null|keine[rs]?|aucune?|ninguno|\u65e0|\u6ca1\u6709|\u306a\u3057|\uc5c6\uc74c)\W{0,2}$/iu;

/** Nothing when there is no grade, or more than one. */
export function readReply({ text, isWhole }: FreeReply): FreeAnswer | undefined {
  const answer = answerIn(text);
  if (answer === undefined) return undefined;
  const own = answer.replaceAll(foreignSpan, ' ').replaceAll(invisible, '').replaceAll(specialToken, '');
  const hints = [...own.matchAll(hintSpan)].map(([, hint = '']) => hint);
  const { graded, rest, behind } = objectsIn(own.replaceAll(hintSpan, ' '));
  if (graded.length > 0 && !isWhole && !ending.test(behind)) return undefined;
  const inObjects =
    graded.length === 0 ? [] : [...graded.map((one) => one.verdict), ...signedGradesIn(withoutQuoted(behind))];
  const verdict = only([...inObjects, ...gradesInWords(withoutQuoted(rest), isWhole)]);
  if (verdict === undefined) return undefined;
  return { verdict, hint: hintOf([...hints, ...graded.map(({ hint }) => hint)]) };
}

const quoted =
  /(["\u201c\u201e\u00ab\u300c])[^"\u201c\u201d\u201e\u00ab\u00bb\u300c\u300d\n]{0,200}["\u201d\u201c\u00bb\u300d]|['\u2018]\\boxed\{[^{}]{1,20}\}['\u2019]/g;

/** A box that is quoted is another's, unless it is all there is. */
function withoutQuoted(text: string): string {
  const all = text.trim();
  return text.replaceAll(quoted, (span) =>
    span.includes('boxed{') && !span.includes('boxed{"') && span !== all ? ' ' : span,
  );
}

function only<T>(values: readonly T[]): T | undefined {
  const [first, ...others] = values;
  return others.every((other) => other === first) ? first : undefined;
}

/** Of several that differ, none can be told to be the one that is meant. */
function hintOf(hints: readonly string[]): string {
  const said = hints.map((hint) => hint.trim()).filter((hint) => /\p{L}/u.test(hint) && !noHint.test(hint));
  return only(said) ?? '';
}

interface Graded {
  readonly verdict: Verdict;
  readonly hint: string;
}

const depthMax = 3;

/** An object with a grade, or with one within it. */
function gradedObject(value: unknown, depth = 0): Graded | undefined {
  if (!isJsonObject(value) || depth > depthMax) return undefined;
  const named = (name: string) => Object.entries(value).find(([key]) => key.toLowerCase() === name)?.[1];
  const grade = named('grade') ?? named('verdict');
  const verdict = typeof grade === 'number' || typeof grade === 'string' ? gradeIn(String(grade)) : undefined;
  const hint = named('hint');
  if (verdict !== undefined) return { verdict, hint: typeof hint === 'string' ? hint : '' };
  const within = Object.values(value).flatMap((one) => gradedObject(one, depth + 1) ?? []);
  return within.length === 1 ? within[0] : undefined;
}

const triesMax = 64;
const leadCharacters = 40;

/** Whether an object stands by itself: at the beginning, on a line of its own, in a fence or a box. One within a sentence is quoted. */
function standsAlone(text: string, open: number): boolean {
  const lead = text.slice(Math.max(0, open - leadCharacters), open);
  const bare = lead.trimEnd();
  if (bare.endsWith('[')) return standsAlone(text, open - lead.length + bare.length - 1);
  return bare === '' || lead.slice(bare.length).includes('\n') || /(?:`|boxed\{|json)$/i.test(bare);
}

interface Objects {
  readonly graded: readonly Graded[];
  /** The text without objects. */
  readonly rest: string;
  /** What comes after the last one with a grade. */
  readonly behind: string;
}

/** Objects in the text, in JSON or in what models take for JSON. */
function objectsIn(text: string): Objects {
  const graded: Graded[] = [];
  let [rest, from, behindFrom, tries] = ['', 0, 0, 0];
  for (let open = text.indexOf('{'); open !== -1; open = text.indexOf('{', open + 1)) {
    for (let close = text.indexOf('}', open); close !== -1 && tries < triesMax; close = text.indexOf('}', close + 1)) {
      tries += 1;
      const value = parsed(text.slice(open, close + 1));
      if (value === undefined) continue;
      const found = standsAlone(text, open) ? gradedObject(value) : undefined;
      if (found !== undefined) graded.push(found);
      rest += `${text.slice(from, open)} `;
      [from, behindFrom] = [close + 1, found === undefined ? behindFrom : close + 1];
      open = close;
      break;
    }
  }
  return { graded, rest: rest + text.slice(from), behind: text.slice(behindFrom) };
}

/** Models break lines within strings, too. */
function parsed(text: string): unknown {
  return parsedAs(text) ?? (text.includes('\n') ? parsedAs(text.replaceAll('\n', ' ')) : undefined);
}

function parsedAs(text: string): unknown {
  try {
    const value: unknown = JSON5.parse(text);
    return isJsonObject(value) && Object.keys(value).length > 0 ? value : undefined;
  } catch {
    return undefined;
  }
}

interface Box {
  readonly start: number;
  readonly end: number;
  readonly verdict: Verdict;
}

const boxHead = /\\{0,2}(?:boxed|fbox)\s*(?:\{|(?=[+\u2212-]?[01](?!\d)))|<\|begin_of_box\|>/g;
const boxCharactersMax = 80;
const boxTail = '<|end_of_box|>';

/** Boxes that hold a grade; all other boxes are about something else. */
function boxesIn(text: string): Box[] {
  return [...text.matchAll(boxHead)].flatMap(({ 0: head, index: start }): Box[] => {
    const from = start + head.length;
    const end = boxEnd(text, from, head);
    const verdict = end === undefined ? undefined : gradeIn(text.slice(from, end.within));
    return end === undefined || verdict === undefined ? [] : [{ start, end: end.after, verdict }];
  });
}

function boxEnd(
  text: string,
  from: number,
  head: string,
): { readonly within: number; readonly after: number } | undefined {
  if (head.startsWith('<')) {
    const within = text.indexOf(boxTail, from);
    return within === -1 ? undefined : { within, after: within + boxTail.length };
  }
  if (!head.endsWith('{')) {
    const [bare = ''] = /^\S{1,2}/.exec(text.slice(from)) ?? [];
    return { within: from + bare.length, after: from + bare.length };
  }
  let depth = 1;
  for (let at = from; at < Math.min(text.length, from + boxCharactersMax); at += 1) {
    if (text[at] === '{') depth += 1;
    if (text[at] === '}') depth -= 1;
    if (depth === 0) return { within: at, after: at + 1 };
  }
  return undefined;
}

/** Between the boxes of a list of what a grade may be. */
const listMarks = /[\s,;/|\u3001\u060c$]+/g;
const listWords = new Set(
  ['', 'or', 'and', 'oder', 'und', 'ou', 'et', 'o', 'u', 'y', 'e'].concat([
    '\u6216',
    '\u548c',
    '\u0623\u0648',
    '\u0438\u043b\u0438',
    '\u0438',
    '\ub610\ub294',
    '\u307e\u305f\u306f',
  ]),
);

function isListed(text: string, box: Box, beside: Box | undefined): boolean {
  if (beside === undefined || box.verdict === beside.verdict) return false;
  const [first, second] = box.start < beside.start ? [box, beside] : [beside, box];
  return listWords.has(text.slice(first.end, second.start).replaceAll(listMarks, '').toLowerCase());
}

/** What may stand behind the last words of an answer. */
const ending = /^(?:[\s.*$`}\u3002!]|\\[\])]|<\/\w{1,20}>)*$/;

/** The grades that the words state: one, or several where they contradict each other. */
function gradesInWords(text: string, isWhole: boolean): Verdict[] {
  const all = boxesIn(text);
  const boxes = all.filter((box, at) => !isListed(text, box, all[at - 1]) && !isListed(text, box, all[at + 1]));
  const stated = gradeOfLine(text);
  const last = boxes.at(-1);
  if (last === undefined) return stated === undefined || !isWhole || all.length > 0 ? [] : [stated];
  const behind = text.slice(last.end);
  const isEnd = ending.test(behind);
  if (!isWhole && !isEnd) return [];
  // A model that weighs grades comes to the last one; where it goes on after that, which one it means is open.
  const grades = isEnd ? [last.verdict] : boxes.map(({ verdict }) => verdict);
  return [...grades, ...signedGradesIn(behind), ...(isEnd || stated === undefined ? [] : [stated])];
}
