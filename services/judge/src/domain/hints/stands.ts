// Do words say that they hold beyond this turn? In: weights that `test/judge` fits, a person's own words. Out: the sentences that say
// so, in the person's order, each with the one before it where it only points at that. What is missed is heard again, but what only reports, or was meant for one answer, is taught when it is taken
// for a standing wish: so the bound is above even odds. Pure.
import { clip } from '@backtalk/kit';
import { ownWords } from '../own-words.js';
import { withListsJoined } from '../list-items.js';
import { sentenceEnd } from '../sentence-ends.js';
import { wordsAlone, type IsBare } from '../words/bare.js';
import { featuresOf } from '../words/features.js';
import { wordLikelihoods, type WordWeights } from '../words/reader.js';
import { hasLastingWords } from './lasting-words.js';
import { onlyPoints } from './only-points.js';

/** Of a person's words, those that hold beyond their turn. */
export type StandingSentences = (said: string) => string[];

/** Of longer words, head and tail are read. */
const charactersMax = 16_384;
const sentencesMax = 20;
const sentenceCharactersMax = 300;
/** Logarithm of the odds; */
const oddsMin = 0.5;
/** and where the plain words for it are there. Both were settled on hands that were left out of the fit; `standing-main.js` measures at these. */
const oddsMinInPlainWords = -1.5;

/** No word of these was seen when the weights were fitted: the plain words decide. */
const unread = /[\p{Script=Thai}\p{Script=Lao}\p{Script=Khmer}\p{Script=Myanmar}]/u;

export function createStandingSentences(weights: WordWeights, isBare: IsBare): StandingSentences {
  const stands = (sentence: string) => {
    const isPlain = hasLastingWords(sentence);
    if (isPlain && unread.test(sentence)) return true;
    const { satisfied, correction } = wordLikelihoods(weights, featuresOf(wordsAlone(sentence)));
    return satisfied - correction > (isPlain ? oddsMinInPlainWords : oddsMin);
  };
  return (said) => {
    const sentences = sentencesOf(said);
    // What stands in quotation marks makes no wish of them.
    const held = sentences.map((sentence) => stands(ownWords(sentence)));
    const carries = (at: number) => saysWhat(sentences[at]) && held[at + 1] === true && onlyPoints(sentences[at + 1]);
    return sentences.filter((sentence, at) =>
      held[at] === true ? !onlyPoints(sentence) || carries(at - 1) : carries(at),
    );
  };
  /** Praise and blame are nothing that the next sentence could point at. */
  function saysWhat(sentence = ''): boolean {
    return sentence !== '' && !onlyPoints(sentence) && !isBare(sentence);
  }
}

export function sentencesOf(said: string): string[] {
  const lines = clip(said, charactersMax).replaceAll('\u2019', "'").split('\n');
  return withListsJoined(lines.filter((line) => line.trim() !== ''))
    .flatMap((line) => line.split(sentenceEnd))
    .map((sentence) => sentence.trim())
    .filter((sentence) => sentence.length <= sentenceCharactersMax)
    .slice(0, sentencesMax);
}
