// Evidence that a request came again. In: the question that was answered, and the user's next words. Out: a correction
// when most of the question's own words return: nobody asks again for what they have got.
import type { EvidenceVote } from '../verdict.js';
import { contentWords } from './content-words.js';
import { ownWords } from './own-words.js';

/** Fewer words are too common to mean anything. */
const wordsMin = 3;
const shareMin = 0.75;
/** A shorter part of the question is a word to go on from. */
const nowWordsMin = 2;

export function repeatedRequest(question: string, userText: string): EvidenceVote | undefined {
  const asked = contentWords(question);
  if (asked.size < wordsMin) return undefined;
  const now = contentWords(ownWords(userText));
  const shared = [...asked].filter((word) => now.has(word)).length;
  const saysNothingElse = now.size >= nowWordsMin && shared === now.size;
  if (shared / asked.size < shareMin && !saysNothingElse) return undefined;
  return { name: 'regenerated', verdict: -1, detail: 'same_request' };
}
