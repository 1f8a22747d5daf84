// What of a message its author wrote for us, and what is pasted. In: a user's message. Out: the message without what
// stands in quotation marks, code fences and quoted lines: that is another's text, and says nothing of the answer. Work
// grows with the text's length and no faster, whatever stands in it.
import { clip } from '@backtalk/kit';
import { sentenceEnd, spacedEnds, unspacedEnds } from './sentence-ends.js';

/** Shorter quotations are figures of speech or names, and stay. */
const quotedCharactersMin = 24;
/** Of a longer message, head and tail are read. */
const charactersMax = 16_384;
/** Inches and seconds open nothing. */
const straight = /(?<!\d)"|"(?=\p{L})/gu;
const marks: readonly Marks[] = [
  [straight, /"/g],
  [/\u201e/g, /[\u201c\u201d]/g],
  [/\u201c/g, /\u201d/g],
  [/\u300c/g, /\u300d/g],
];
/** «so», or »so« where the first that stands as an opening one does is that. */
const guillemets = (text: string): Marks =>
  /(?:^|[\s(])(?:\u00bb(?=\S)|\u00ab)/.exec(text)?.[0].endsWith('\u00bb') === true
    ? [/\u00bb/g, /\u00ab/g]
    : [/\u00ab/g, /\u00bb/g];
type Marks = readonly [open: RegExp, close: RegExp];
/** Stands where something was cut out. */
const cut = '\uFFFC';
const endsSentence = new RegExp(`[${spacedEnds}${unspacedEnds}]$`, 'u');

export function ownWords(text: string): string {
  return without(text, { stays: (quoted) => quoted.length < quotedCharactersMin, inPlaceOf: () => ' ' });
}

/**
 * The same, with a mark wherever something is left out, for `wholeSentences`. A phrase in quotation marks stays: it may be what is wanted
 * ("end with ..."). Whether words ask for anything is to be read without it, in `ownWords`.
 */
export function markedWords(text: string): string {
  return without(text.replaceAll(cut, ' '), { stays: isPhrase, inPlaceOf: markFor });
}

/** What may be one sentence's part, and no more than that. */
const phraseCharactersMax = 48;

function isPhrase(quoted: string): boolean {
  return (
    quoted.length < quotedCharactersMin || (quoted.length <= phraseCharactersMax && !/[.!?\u2026]\s|\n/u.test(quoted))
  );
}

/** Words with marks, without the sentences that have one: half of what was said may ask for the opposite. */
export function wholeSentences(marked: string): string {
  const kept: string[] = [];
  for (const line of marked.split('\n')) {
    const sentences = line.split(sentenceEnd);
    // It goes on from the line before: what that began goes along.
    if (sentences[0]?.includes(cut) === true && /^\s*\p{Ll}/u.test(line)) dropUnended(kept);
    kept.push(
      sentences
        .filter((sentence) => !sentence.includes(cut))
        .join('')
        .trim(),
    );
  }
  return kept.join('\n').trim();
}

/** Takes away what stands behind the last end of a sentence, down to an empty line. */
function dropUnended(lines: string[]): void {
  for (let last = lines.pop(); last !== undefined && last !== ''; last = lines.pop()) {
    const ended = last.split(sentenceEnd);
    if (!endsSentence.test((ended.at(-1) ?? '').trimEnd())) ended.pop();
    if (ended.length === 0) continue;
    lines.push(ended.join('').trim());
    return;
  }
}

/** In the place of what is cut out between two texts. */
export function cutBetween(before: string, after: string): string {
  return `${before}${cut}${after}`;
}

interface Cutting {
  readonly stays: (quoted: string) => boolean;
  readonly inPlaceOf: (foreign: string, next: string) => string;
}

function without(text: string, cutting: Cutting): string {
  const parts = clip(text, charactersMax).split('```');
  const between = cutting.inPlaceOf('', '');
  // One that is not closed goes to the end.
  const withoutCode = parts.filter((_, at) => at % 2 === 0).join(between) + (parts.length % 2 === 0 ? between : '');
  const all = [...marks, guillemets(withoutCode)];
  const withoutQuotes = all.reduce((rest, pair) => withoutQuoted(rest, pair, cutting), withoutCode);
  return withoutQuotes
    .split('\n')
    .filter((line) => !line.startsWith('>'))
    .join('\n')
    .trim();
}

/** The first place of a mark from there on; -1 where there is none. */
function placeOf(mark: RegExp, text: string, from: number): number {
  mark.lastIndex = from;
  return mark.exec(text)?.index ?? -1;
}

function withoutQuoted(text: string, [open, close]: Marks, { stays, inPlaceOf }: Cutting): string {
  const kept: string[] = [];
  let from = 0;
  for (;;) {
    const start = placeOf(open, text, from);
    const end = start === -1 ? -1 : placeOf(close, text, start + 1);
    if (end === -1) return kept.concat(text.slice(from)).join('');
    const quoted = text.slice(start, end + 1);
    kept.push(
      text.slice(from, start),
      stays(quoted) ? quoted : inPlaceOf(quoted.slice(1, -1), text.slice(end + 1, end + 3)),
    );
    from = end + 1;
  }
}

/** A quotation of whole sentences, behind which another begins, is one of its own. */
function markFor(quoted: string, next: string): string {
  return endsSentence.test(quoted.trimEnd()) && /^\s[^\p{Ll}\s]/u.test(next) ? `${cut}.` : cut;
}
