// What of a next state is counted. In: the next state with the question and the answer before it. Out: a set of names:
// beginnings of words, pairs of them, runs of characters, opinion words, how long it is, whether it asks on from the answer or asks again. Text that a
// person quotes is not counted, and of what tools print only the beginning is: what stands further down is content.
import type { Material } from '../material.js';
import { withoutAddressed } from '../addressed.js';
import { ownWords } from '../own-words.js';

const userCharactersRead = 400;
const toolCharactersRead = 160;
/** What is said to a judge is looked for in so many, and taken out. */
const charactersSearched = 2_048;
/** "name" and "names" are one. */
const beginning = 5;

function wordsIn(words: string): ReadonlySet<string> {
  return new Set(words.split(' '));
}

const praisingWords = wordsIn(
  'good great nice excellent perfect wonderful lovely amazing awesome fantastic brilliant superb beautiful helpful useful ' +
    'clear clever love like enjoy happy glad pleased fun funny cool best works worked solved fixed thanks thank grateful ' +
    'interesting easy fine sweet super delicious liked loved enjoyed helped success successful succeeded done saved sent ' +
    'created finished ok confirmed',
);
const blamingWords = wordsIn(
  'bad wrong incorrect false terrible awful horrible poor useless stupid boring confusing confused unclear ugly annoying ' +
    'hate dislike fail fails failed failing failure broken error errors problem worse worst missing lost angry disappointed ' +
    'nonsense mistake mistakes nothing denied invalid refused rejected cannot unable crash crashed unknown timeout',
);
/** They turn the words after them, to the next punctuation mark. */
const negatingWords = wordsIn('not no never without');
/** They say nothing of what a text is about. */
const commonWords = wordsIn(
  'a an the is are was be do does did how what why when where who which can could should would will i you me my your ' +
    'we our us it its this that to of in on at for with and or but not from by as so if than then there some any tell ' +
    'please about',
);

const contractions: readonly (readonly [RegExp, string])[] = [
  [/\bcan't\b/g, 'can not'],
  [/\bwon't\b/g, 'will not'],
  [/n't\b/g, ' not'],
  [/'m\b/g, ' am'],
  [/'re\b/g, ' are'],
  [/'ll\b/g, ' will'],
  [/'ve\b/g, ' have'],
  [/'d\b/g, ' would'],
  [/'s\b/g, ' is'],
];

/** What is read of a turn. */
export type Read = Pick<Material, 'next' | 'question' | 'answer'>;

export function featuresOf(read: Read): ReadonlySet<string> {
  const isUser = read.next.role === 'user';
  const said = isUser
    ? withoutAddressed(ownWords(read.next.text).slice(0, charactersSearched)).slice(0, userCharactersRead)
    : withoutAddressed(read.next.text.slice(0, charactersSearched)).slice(0, toolCharactersRead);
  const plain = said.toLowerCase().replaceAll('\u2019', "'").trim();
  const text = contractions.reduce((rest, [pattern, spelled]) => rest.replaceAll(pattern, spelled), plain);
  const words = text.match(/[\p{L}]+|\d+|[?!.,:]/gu) ?? [];
  const own = isUser ? userFeatures(text, words, read) : toolFeatures(text, words, read);
  const stems = words.map((word) => (/^\d/.test(word) ? '0' : word.slice(0, beginning)));
  const framed = ['^', ...stems, '$'];
  const pairs = framed.slice(1).map((word, at) => `${framed[at] ?? ''} ${word}`);
  return new Set([...stems, ...pairs, ...opinions(words), ...own]);
}

function opinions(words: readonly string[]): string[] {
  const found: string[] = [];
  let isNegated = false;
  for (const word of words) {
    if (negatingWords.has(word)) isNegated = true;
    else if (/^[.,!?:]$/.test(word)) isNegated = false;
    else if (praisingWords.has(word)) found.push(isNegated ? '_blames' : '_praises');
    else if (blamingWords.has(word)) found.push(isNegated ? '_spares' : '_blames');
  }
  return found;
}

const openingOfQuestion =
  /^(?:(?:and|so|ok|okay|oh|but|also)[, ]+)*(?:how|what|when|where|which|who|why|whose|is|are|was|were|does|do|did)\b/;
const backwards = /\b(?:it|its|they|them|their|these|those|ones?|there|this|that)\b/;

function userFeatures(text: string, words: readonly string[], { question, answer }: Read): string[] {
  const known = new Set([...contentWords(question), ...contentWords(answer)]);
  const isNear = [...contentWords(text)].some((word) => known.has(word));
  const reach = isNear ? 'near' : backwards.test(text) ? 'back' : 'apart';
  const asks = text.endsWith('?');
  return [
    ...runsIn(words),
    ...repeats(text, question),
    `_length ${steps(words.length, [1, 3, 8, 16])}`,
    ...(asks ? ['_asks', `_asks ${reach}`] : [`_says ${isNear ? 'near' : 'apart'}`]),
    ...(openingOfQuestion.test(text) ? [`_opens ${reach}`] : []),
    ...(/\byou\b/.test(text) ? [asks ? '_you asks' : '_you'] : []),
  ];
}

const fetching = /fetch|search|browse|web|read|page|url|open|get|list/i;

function toolFeatures(text: string, words: readonly string[], { next }: Read): string[] {
  return [
    /^[{[]/.test(text) ? '_fields' : '_prose',
    `_length ${steps(words.length, [0, 2, 8])}`,
    next.toolResults.some(({ name }) => fetching.test(name)) ? '_fetches' : '_acts',
    ...(text.includes('?') ? ['_asks'] : []),
  ];
}

function steps(value: number, bounds: readonly number[]): number {
  return bounds.filter((bound) => value > bound).length;
}

/** Beginnings of the words that say what a text is about. */
function contentWords(text: string): Set<string> {
  const words = text.toLowerCase().match(/[\p{L}\p{N}]+/gu) ?? [];
  return new Set(words.filter((word) => !commonWords.has(word)).map((word) => word.slice(0, beginning)));
}

const unspacedScript = /[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Thai}]/u;

/** Runs of characters in a word: they carry what endings and stems say, in any language. */
function runsIn(words: readonly string[]): string[] {
  return words.flatMap((word) => {
    const framed = [...` ${word} `];
    const sizes = unspacedScript.test(word) ? [1, 2] : [3, 4];
    return sizes.flatMap((size) => framed.slice(size - 1).map((_, at) => `~${framed.slice(at, at + size).join('')}`));
  });
}

/** How much of the question it says again, and how much of what it says stood in the question: each 0, 1 or 2. */
function repeats(text: string, question: string): string[] {
  const asked = contentWords(question);
  const said = contentWords(text);
  const shared = [...asked].filter((word) => said.has(word)).length;
  const third = (all: ReadonlySet<string>) => String(Math.floor((2.99 * shared) / Math.max(1, all.size)));
  return [`_repeats ${third(asked)}`, `_own ${third(said)}`];
}
