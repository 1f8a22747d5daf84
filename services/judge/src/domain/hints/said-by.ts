// Did the person say what a hint says? In: a hint that a model wrote, and the person's own words. Out: yes or no. The model
// read tools' results, files and pages too, and what they ask for is no instruction of this person. Pure.
import { unspacedScript } from '../unspaced-script.js';
import { emptyWords } from './empty-words.js';

/** Words say the same from here on: "short", "shorter". */
const beginning = 5;
/** Of what the hint says, so much stands in the person's words. */
const sharedMin = 1 / 3;

export function isSaidBy(hint: string, words: string): boolean {
  const meant = stemsOf(hint);
  const said = stemsOf(words);
  const shared = [...meant].filter((stem) => said.has(stem)).length;
  return shared > 0 && shared / meant.size >= sharedMin;
}

function stemsOf(text: string): Set<string> {
  const words =
    text
      .normalize('NFC')
      .toLowerCase()
      .match(/[\p{L}\p{M}\p{N}]+/gu) ?? [];
  return new Set(words.filter((word) => !emptyWords.has(word)).flatMap((word) => stemsIn(word)));
}

/** Where no space stands between words, two characters say about what one word says. */
function stemsIn(word: string): string[] {
  if (!unspacedScript.test(word)) return [word.slice(0, beginning)];
  const characters = [...word];
  if (characters.length < 2) return characters;
  const pairs = characters.slice(1).map((character, at) => `${characters[at] ?? ''}${character}`);
  return pairs.filter((pair) => !emptyWords.has(pair));
}
