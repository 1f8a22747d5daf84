// Which hint a judged turn carries. In: candidates in the order of the votes, and the answer they are about. Out: one
// hint, or none. A hint that is short, or a copy of the answer, teaches nothing.

export const hintChoices = ['longest', 'shortest', 'overlap'] as const;
export type HintChoice = (typeof hintChoices)[number];

const charactersMin = 10;
const charactersMax = 400;
const sentencesMax = 3;
/** Of the hint's words that stand in the answer in the same order. */
const copiedShareMax = 0.8;

export function chooseHint(candidates: readonly string[], answer: string, choice: HintChoice): string {
  // One to three sentences, on one line.
  const tidied = candidates.map((hint) => {
    const line = hint.replaceAll(/\s+/g, ' ').trim();
    const sentences = line.split(/(?<=[.!?])\s+/);
    return sentences.slice(0, sentencesMax).join(' ');
  });
  const accepted = tidied.filter((hint) => isAccepted(hint, answer));
  const [first = '', ...rest] = accepted;
  switch (choice) {
    case 'longest':
      return rest.reduce((best, hint) => (hint.length > best.length ? hint : best), first);
    case 'shortest':
      return rest.reduce((best, hint) => (hint.length < best.length ? hint : best), first);
    case 'overlap':
      return rest.reduce((best, hint) => (agreement(hint, accepted) > agreement(best, accepted) ? hint : best), first);
  }
}

function isAccepted(hint: string, answer: string): boolean {
  if (hint.length <= charactersMin || hint.length > charactersMax) return false;
  // Three words in a row that the answer has too are copied.
  const words = wordsOf(hint);
  const text = ` ${wordsOf(answer).join(' ')} `;
  if (words.length < 3) return !text.includes(` ${words.join(' ')} `);
  const runs = words.slice(2).map((_, at) => words.slice(at, at + 3).join(' '));
  const copied = runs.filter((run) => text.includes(` ${run} `)).length;
  return copied / runs.length <= copiedShareMax;
}

/** How many words of the others a hint holds, on average. */
function agreement(hint: string, all: readonly string[]): number {
  const own = new Set(wordsOf(hint));
  const shares = all.map((other) => {
    const words = new Set(wordsOf(other));
    return [...words].filter((word) => own.has(word)).length / Math.max(1, words.size);
  });
  return shares.reduce((sum, share) => sum + share, 0) / Math.max(1, shares.length);
}

function wordsOf(text: string): string[] {
  return text.toLowerCase().match(/[\p{L}\p{N}']+/gu) ?? [];
}
