// Words of a text as the small model counts them. In: a text. Out: its words, their beginnings, its sentences. Pure.

/** "name" and "names" are one. */
const beginning = 5;
/** They say nothing of what a text is about. */
const commonWords = new Set(
  (
    'a an the is are was be do does did how what why when where who which can could should would will i you me my your ' +
    'we our us it its this that to of in on at for with and or but not from by as so if than then there some any tell ' +
    'please about'
  ).split(' '),
);

/** Punctuation that ends something is a word too. */
export function wordsOf(text: string): string[] {
  return text.match(/[\p{L}]+|\d+|[?!.,:]/gu) ?? [];
}

/** Numbers are one word. */
export function stemsIn(text: string): string[] {
  return wordsOf(text).map((word) => (/^\d/.test(word) ? '0' : word.slice(0, beginning)));
}

/** Beginnings of the words that say what a text is about. */
export function contentWords(text: string): Set<string> {
  const words = text.toLowerCase().match(/[\p{L}\p{N}]+/gu) ?? [];
  return new Set(words.filter((word) => !commonWords.has(word)).map((word) => word.slice(0, beginning)));
}

export function sentencesIn(text: string): string[] {
  return text.split(/(?<=[.!?,:])\s+|\n/).filter((sentence) => sentence.trim() !== '');
}

/** It speaks of what was said before. */
export function asksOn(text: string): boolean {
  return /\b(?:it|its|they|them|their|these|those|ones?|there|this|that)\b/.test(text);
}

export function steps(value: number, bounds: readonly number[]): string {
  return String(bounds.filter((bound) => value > bound).length);
}
