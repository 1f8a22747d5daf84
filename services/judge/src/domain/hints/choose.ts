// Which hint a judged turn carries. In: candidates in the order of the votes, and the answer they are about. Out: one hint, or none, and the
// others where the training worker is to choose among them. A hint that is short, or a copy of the answer, teaches nothing.
import { sentenceEnd } from '../sentence-ends.js';
import { unspacedScript } from '../unspaced-script.js';

export const hintChoices = ['longest', 'shortest', 'overlap'] as const;
export type HintChoice = (typeof hintChoices)[number];

const charactersMin = 10;
/** One Chinese character says about what so many letters say. */
const charactersOfWord = 3;
const charactersMax = 400;
const sentencesMax = 3;
/** Of the hint's words that stand in the answer in the same order. */
const copiedShareMax = 0.8;

export interface ChosenHint {
  /** Empty: none is accepted. */
  readonly hint: string;
  /** Of the choice `overlap`, which is made where teacher and policy are: what else there is. */
  readonly others: readonly string[];
}

export function chooseHint(candidates: readonly string[], answer: string, choice: HintChoice): ChosenHint {
  // One to three sentences, on one line.
  const tidied = candidates.map((hint) => {
    const line = hint.replaceAll(/\s+/g, ' ').trim();
    return line.split(sentenceEnd).slice(0, sentencesMax).join('');
  });
  const accepted = [...new Set(tidied.filter((hint) => isAccepted(hint, answer)))];
  const [first = '', ...rest] = accepted;
  const isBetter = (hint: string, best: string) =>
    choice === 'shortest' ? hint.length < best.length : hint.length > best.length;
  const hint = rest.reduce((best, other) => (isBetter(other, best) ? other : best), first);
  return { hint, others: choice === 'overlap' ? accepted.filter((other) => other !== hint) : [] };
}

function isAccepted(hint: string, answer: string): boolean {
  const least = unspacedScript.test(hint) ? charactersMin / charactersOfWord : charactersMin;
  if (hint.length <= least || hint.length > charactersMax) return false;
  // Three words in a row that the answer has too are copied.
  const words = wordsOf(hint);
  const text = ` ${wordsOf(answer).join(' ')} `;
  if (words.length < 3) return !text.includes(` ${words.join(' ')} `);
  const runs = words.slice(2).map((_, at) => words.slice(at, at + 3).join(' '));
  const copied = runs.filter((run) => text.includes(` ${run} `)).length;
  return copied / runs.length <= copiedShareMax;
}

function wordsOf(text: string): string[] {
  return text.toLowerCase().match(/[\p{L}\p{N}']+/gu) ?? [];
}
