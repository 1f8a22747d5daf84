// Whether a person's words only judge ("wrong again", "try that once more") and ask for nothing that another answer could follow. In: weights
// that `test/judge` fits, the words. Out: whether that is likelier than not. Pure.
import { featuresOf, type Read } from './features.js';
import { wordLikelihoods, type WordWeights } from './reader.js';

export type IsBare = (words: string) => boolean;

export function createIsBare(weights: WordWeights): IsBare {
  return (words) => {
    const { satisfied, correction } = wordLikelihoods(weights, featuresOf(wordsAlone(words)));
    return satisfied > correction;
  };
}

/** Words as a reply to nothing in particular: what is said again from a question or an answer does not count. */
export function wordsAlone(text: string): Read {
  return { next: { role: 'user', text, userText: text, toolResults: [] }, question: '', answer: '' };
}
