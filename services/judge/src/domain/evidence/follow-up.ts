// Evidence that a person goes on from the answer. In: what was asked and answered, and the user's next words. Out: a
// sign of content when it is a plain question that refers back: nobody asks on from an answer that was of no use.
import type { EvidenceVote } from '../verdict.js';
import { contentWords } from './content-words.js';
import { ownWords } from './own-words.js';

/** A longer message says more than one thing. */
const charactersMax = 120;
const opening =
  /^(?:(?:and|so|ok|okay|oh|but|also)[, ]+)*(?:how|what|when|where|which|who|why|whose|is|are|was|were|does|do|did|can|could|would|will|should|has|have)\b/;
const backwards = /\b(?:it|its|they|them|their|these|those|ones?|there|he|she|him|her|this|that)\b/;
/** Doubt, or a word with the assistant itself. */
const doubtful = /n't\b|\b(?:you|your|not|no|sure|really|again|wrong|instead|still)\b/;

export function followUp(asked: string, answered: string, userText: string): EvidenceVote | undefined {
  const words = ownWords(userText).toLowerCase().replaceAll('\u2019', "'").trim();
  const isOneQuestion = words.endsWith('?') && words.indexOf('?') === words.length - 1;
  if (!isOneQuestion || words.length > charactersMax || !opening.test(words) || doubtful.test(words)) return undefined;
  const known = new Set([...contentWords(asked), ...contentWords(answered)]);
  const refersBack = backwards.test(words) || [...contentWords(words)].some((word) => known.has(word));
  return refersBack ? { name: 'wording', verdict: 1, detail: 'follow_up' } : undefined;
}
