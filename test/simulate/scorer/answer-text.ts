// What is measured on the text of answers alone, and the rows that a curve is read against, where a model scores. In: answers.
// Out: booleans, and answers cut or exchanged. The bounds are those of the scorer in Python (test/scoring), whose code is its own.
import type { HeldOutAnswer } from './scores.js';

const wordsMin = 3;
const loop = { words: 4, times: 3 };
const echoShare = 0.6;
/** Letters by which two words count as the same. */
const stemLetters = 5;
/** Shorter words carry no meaning of their own, mostly. */
const ownWordLetters = 4;

const wordsOf = (text: string) => text.toLowerCase().split(/\s+/).filter(Boolean);

export function isEmpty({ answer }: HeldOutAnswer): boolean {
  return wordsOf(answer).length < wordsMin;
}

/** Some words in a row come again and again. */
export function isLooping({ answer }: HeldOutAnswer): boolean {
  const said = wordsOf(answer);
  const seen = new Map<string, number>();
  for (let at = 0; at + loop.words <= said.length; at += 1) {
    const run = said.slice(at, at + loop.words).join(' ');
    const times = (seen.get(run) ?? 0) + 1;
    if (times >= loop.times) return true;
    seen.set(run, times);
  }
  return false;
}

/** Most of what it says stands in the question already, or it says nothing of its own. */
export function isEcho({ question, answer }: HeldOutAnswer): boolean {
  const stems = (text: string) =>
    (text.toLowerCase().match(/[\p{L}\p{N}']+/gu) ?? [])
      .filter((word) => word.length >= ownWordLetters || /\p{N}/u.test(word))
      .map((word) => word.slice(0, stemLetters));
  const asked = new Set(stems(question));
  const said = stems(answer);
  return said.length === 0 || said.filter((stem) => asked.has(stem)).length / said.length >= echoShare;
}

/** Up to the first sentence's end, which counts as its own end; a list's number ends none. */
export function firstSentence({ question, answer, ended }: HeldOutAnswer): HeldOutAnswer {
  for (const { 0: marks, index } of answer.matchAll(/(?<![.!?])[.!?]+["')\]*]*(?=\s|$)/g)) {
    const cut = answer.slice(0, index + marks.length);
    const line = cut.slice(cut.lastIndexOf('\n') + 1).trim();
    if (!/^\d{1,2}\.$/.test(line)) return { question, answer: cut.trim(), ended: true };
  }
  return { question, answer, ended };
}

/** Every question gets the answer to the one before it. */
export function exchanged(answers: readonly HeldOutAnswer[]): HeldOutAnswer[] {
  return answers.map(({ question }, at) => {
    const other = answers.at(at - 1);
    return { question, answer: other?.answer ?? '', ended: other?.ended ?? false };
  });
}
