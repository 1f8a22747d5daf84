// Did the person say what a hint says? In: a hint that a model wrote, and the person's own words. Out: yes or no. The model
// read tools' results, files and pages too, and what they ask for is no instruction of this person. Pure.
import { unspacedScript } from '../unspaced-script.js';
import { emptyWords } from './empty-words.js';

/** Words say the same from here on: "short", "shorter". */
const beginning = 5;
/** Of what the hint says, so much stands in the person's words. */
const sharedMin = 1 / 3;
/** Of a hint that has nothing but empty words ("tu", not "vous"), which any text has some of. */
const emptySharedMin = 1 / 2;

export function isSaidBy(hint: string, words: string): boolean {
  const meant = wordsOf(hint).filter((word) => !emptyWords.has(word));
  if (meant.length === 0) return shareOf(stemsOf(wordsOf(hint)), stemsOf(wordsOf(words))) >= emptySharedMin;
  return shareOf(stemsOf(meant), stemsOf(wordsOf(words).filter((word) => !emptyWords.has(word)))) >= sharedMin;
}

/** Of what a hint says, what the person says too: 0 to 1. */
function shareOf(meant: ReadonlySet<string>, said: ReadonlySet<string>): number {
  return [...meant].filter((stem) => said.has(stem)).length / Math.max(1, meant.size);
}

function stemsOf(words: readonly string[]): Set<string> {
  return new Set(words.flatMap((word) => stemsIn(word)));
}

function wordsOf(text: string): string[] {
  return (
    text
      .normalize('NFC')
      .toLowerCase()
      .match(/[\p{L}\p{M}\p{N}]+/gu) ?? []
  );
}

/** Where no space stands between words, two characters say about what one word says. */
function stemsIn(word: string): string[] {
  if (!unspacedScript.test(word)) return [word.slice(0, beginning)];
  const characters = [...word];
  if (characters.length < 2) return characters;
  const pairs = characters.slice(1).map((character, at) => `${characters[at] ?? ''}${character}`);
  return pairs.filter((pair) => !emptyWords.has(pair));
}
