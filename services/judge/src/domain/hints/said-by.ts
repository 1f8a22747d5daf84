// Did the person say what a hint says? In: a hint that a model wrote, and the person's own words. Out: yes or no. The model
// read tools' results, files and pages too, and what they ask for is no instruction of this person. Pure.
import { unspacedScript } from '../unspaced-script.js';
import { isEmptyIn } from './empty-words.js';

/** Words say the same from here on: "short", "shorter". */
const beginning = 5;
/** Of what the hint says, so much stands in the person's words. */
const sharedMin = 1 / 3;
/** Of a hint that has nothing but empty words ("tu", not "vous"), which any text has some of. */
const emptySharedMin = 1 / 2;

export function isSaidBy(hint: string, words: string): boolean {
  const [meant, said] = [piecesOf(hint), stemsOf(piecesOf(words))];
  const isEmpty = isEmptyIn(meant);
  const full = stemsOf(meant.filter((piece) => !isEmpty(piece)));
  return full.size > 0 ? shareOf(full, said) >= sharedMin : shareOf(stemsOf(meant), said) >= emptySharedMin;
}

/** Of what a hint says, what the person says too: 0 to 1. */
function shareOf(meant: ReadonlySet<string>, said: ReadonlySet<string>): number {
  return [...meant].filter((stem) => said.has(stem)).length / Math.max(1, meant.size);
}

function stemsOf(pieces: readonly string[]): Set<string> {
  return new Set(pieces.map((piece) => (unspacedScript.test(piece) ? piece : piece.slice(0, beginning))));
}

/** Words in small letters; where no space stands between them, two characters say about what one word says. */
function piecesOf(text: string): string[] {
  const words =
    text
      .normalize('NFC')
      .toLowerCase()
      .match(/[\p{L}\p{M}\p{N}]+/gu) ?? [];
  return words.flatMap((word) => {
    const characters = [...word];
    if (!unspacedScript.test(word) || characters.length < 2) return [word];
    return characters.slice(1).map((character, at) => `${characters[at] ?? ''}${character}`);
  });
}
