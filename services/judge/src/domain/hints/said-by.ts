// Did the person say what a hint says? In: a hint that a model wrote, and the person's own words. Out: yes or no. The model
// read tools' results, files and pages too, and what they ask for is no instruction of this person. Pure.
import { unspacedScript } from '../unspaced-script.js';

/** Words say the same from here on: "short", "shorter". */
const beginning = 5;
/** Of what the hint says, so much stands in the person's words. */
const sharedMin = 1 / 3;
/** They stand in any instruction, and in any text. */
const emptyWords = new Set(
  (
    'a an the and or but of in on at to for with from by as so if than then is are be was were it its this that these ' +
    'those i you he she they we me my your their our do does not no any all every each more most very just only ' +
    'please should must will would can could when where what how answer answers reply replies response responses ' +
    'user users assistant always use using write give make keep say provide include'
  ).split(' '),
);

export function isSaidBy(hint: string, words: string): boolean {
  const meant = stemsOf(hint);
  const said = stemsOf(words);
  const shared = [...meant].filter((stem) => said.has(stem)).length;
  return shared > 0 && shared / meant.size >= sharedMin;
}

function stemsOf(text: string): Set<string> {
  const words = text.toLowerCase().match(/[\p{L}\p{M}\p{N}]+/gu) ?? [];
  return new Set(words.filter((word) => !emptyWords.has(word)).flatMap((word) => stemsIn(word)));
}

/** Where no space stands between words, two characters say about what one word says. */
function stemsIn(word: string): string[] {
  if (!unspacedScript.test(word)) return [word.slice(0, beginning)];
  const characters = [...word];
  if (characters.length < 2) return characters;
  return characters.slice(1).map((character, at) => `${characters[at] ?? ''}${character}`);
}
