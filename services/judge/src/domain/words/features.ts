// What of a next state is counted. In: the next state with the question and the answer before it. Out: a set of names, which begin
// with a sign of their group: beginnings of words and runs of them bare, `~` runs of characters, `>` words by their place, `=` what is
// said again, `@` words of question and answer, `_` form. Text that a person quotes is not counted. No list says which words are good.
import type { Material } from '../material.js';
import { withoutAddressed } from '../addressed.js';
import { ownWords } from '../own-words.js';
import { unspacedScript } from '../unspaced-script.js';
import { repeatsIn } from './repeats.js';
import { asksOn, contentWords, sentencesIn, stemsIn, steps, wordsOf } from './words.js';

const userCharactersRead = 400;
/** The beginning of what a tool prints says most; of the rest only which words stand in it. */
const toolBeginning = 160;
/** What is said to a judge is looked for in so many, and taken out. */
const charactersSearched = 2_048;
/** Of question and answer. */
const beforeCharactersRead = 600;

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
  const { next } = read;
  const own = next.role === 'user' ? ownWords(next.text) : next.text;
  const said = withoutAddressed(own.slice(0, charactersSearched));
  return new Set(
    next.role === 'user' ? userFeatures(said.slice(0, userCharactersRead), read) : toolFeatures(said, read),
  );
}

function userFeatures(said: string, { question, answer }: Read): string[] {
  const before = {
    question: question.slice(0, charactersSearched),
    answer: answer.slice(0, charactersSearched),
  };
  const text = plain(said);
  const stems = stemsIn(text);
  return [
    ...runsOfWords(stems),
    ...runsOfCharacters(wordsOf(text)),
    ...placesOf(text, stems),
    ...repeatsIn(text, said, before),
    ...asking(text, before),
    ...formOf(said, text),
    ...wordsBefore('@a', before.answer),
    ...wordsBefore('@q', before.question),
    ...formOfAnswer(before.answer),
  ];
}

const fetching = /fetch|search|browse|web|read|page|url|open|get|list/i;

function toolFeatures(said: string, { next }: Read): string[] {
  const text = plain(said.slice(0, toolBeginning));
  const stems = stemsIn(text);
  return [
    ...runsOfWords(stems),
    ...stemsIn(plain(said)).map((stem) => `>in ${stem}`),
    /^[{[]/.test(text) ? '_fields' : '_prose',
    `_length ${steps(stems.length, [0, 2, 8])}`,
    `_characters ${steps(said.length, [40, 100, 200, 400, 900])}`,
    `_lines ${steps(said.split('\n').length - 1, [0, 2, 5, 12])}`,
    next.toolResults.some(({ name }) => fetching.test(name)) ? '_fetches' : '_acts',
    ...(text.includes('?') ? ['_asks'] : []),
  ];
}

function plain(text: string): string {
  const lower = text.toLowerCase().replaceAll('\u2019', "'").trim();
  return contractions.reduce((rest, [pattern, spelled]) => rest.replaceAll(pattern, spelled), lower);
}

function runsOfWords(stems: readonly string[]): string[] {
  const framed = ['^', ...stems, '$'];
  return [...stems, ...framed.slice(1).map((stem, at) => `${framed[at] ?? ''} ${stem}`)];
}

/** They carry what endings and stems say, in any language. */
function runsOfCharacters(words: readonly string[]): string[] {
  return words.flatMap((word) => {
    const framed = [...` ${word} `];
    const sizes = unspacedScript.test(word) ? [1, 2] : [3, 4];
    return sizes.flatMap((size) => framed.slice(size - 1).map((_, at) => `~${framed.slice(at, at + size).join('')}`));
  });
}

/** The first words of the message and of its sentences, and words that stand near each other. */
function placesOf(text: string, stems: readonly string[]): string[] {
  const sentences = sentencesIn(text)
    .map((sentence) => stemsIn(sentence))
    .filter((words) => words.length > 0);
  const heads = sentences.flatMap(([first = '', second]) => [
    `>s ${first}`,
    ...(second === undefined ? [] : [`>s ${first} ${second}`]),
  ]);
  const threes = stems.slice(2).flatMap((third, at) => {
    const [first = '', second = ''] = stems.slice(at, at + 2);
    return [`>3 ${first} ${second} ${third}`, `>2 ${first} ${third}`];
  });
  return [...stems.slice(0, 4).map((stem) => `>1 ${stem}`), ...heads, `>l ${sentences.at(-1)?.[0] ?? ''}`, ...threes];
}

const openingOfQuestion =
  /^(?:(?:and|so|ok|okay|oh|but|also)[, ]+)*(?:how|what|when|where|which|who|why|whose|is|are|was|were|does|do|did)\b/;

/** A question about the answer goes on from it; one about anything else says nothing of it. */
function asking(text: string, { question, answer }: Pick<Read, 'question' | 'answer'>): string[] {
  const known = contentWords(`${question} ${answer}`);
  const isNear = [...contentWords(text)].some((word) => known.has(word));
  const reach = isNear ? 'near' : asksOn(text) ? 'back' : 'apart';
  const asks = text.endsWith('?');
  return [
    ...(asks ? ['_asks', `_asks ${reach}`] : [`_says ${isNear ? 'near' : 'apart'}`]),
    ...(openingOfQuestion.test(text) ? [`_opens ${reach}`] : []),
    ...(/\byou\b/.test(text) ? [asks ? '_you asks' : '_you'] : []),
  ];
}

const emoji = /[\u{1F300}-\u{1FAFF}\u2600-\u27bf]|[:;]-?[)(DP/]/gu;

/** How it is written: it tells tempers apart in any language. */
function formOf(said: string, text: string): string[] {
  const bare = said.trim();
  if (bare === '') return ['_empty'];
  const letters = bare.match(/\p{L}/gu)?.length ?? 0;
  const capitals = bare.match(/\p{Lu}/gu)?.length ?? 0;
  const end = [...bare.slice(-2)].at(-1) ?? '';
  return [
    `_length ${steps(wordsOf(text).length, [1, 3, 8, 16])}`,
    `_characters ${steps(said.length, [10, 25, 50, 90, 150, 250])}`,
    `_sentences ${steps(sentencesIn(bare).length, [1, 2, 3, 5])}`,
    `_end ${/[\p{L}\p{N}]/u.test(end) ? 'a' : end}`,
    ...(letters > 0 && capitals === 0 ? ['_small'] : []),
    ...(letters > 6 && capitals > 0.8 * letters ? ['_capitals'] : /\p{Lu}{3}/u.test(bare) ? ['_loud'] : []),
    ...(bare.match(emoji) ?? []).map((sign) => `_sign ${sign}`),
    ...signsOfForm.filter(([, pattern]) => pattern.test(bare)).map(([name]) => name),
  ];
}

const signsOfForm: readonly (readonly [string, RegExp])[] = [
  ['_trails', /\.{3}|\u2026/],
  ['_asks twice', /\?\?|\?!|!\?/],
  ['_calls', /!/],
  ['_calls twice', /!!/],
  ['_quotes', /["\u201c\u00ab\u300c]|(?:^|\s)'/],
  ['_lines', /\n/],
  ['_brackets', /[(:]/],
  ['_arrows', /=|->/],
  ['_dashes', / - |[\u2013\u2014]/],
];

function wordsBefore(group: string, text: string): string[] {
  const stems = stemsIn(plain(text.slice(0, beforeCharactersRead))).slice(0, 60);
  const [first = '', second = ''] = stems;
  return [
    ...stems.map((stem) => `${group} ${stem}`),
    `${group}^ ${first}`,
    `${group}^ ${first} ${second}`,
    `${group}$ ${stems.at(-1) ?? ''}`,
    `_${group} ${steps(stems.length, [3, 8, 15, 25, 40])}`,
  ];
}

function formOfAnswer(answer: string): string[] {
  return [
    ...(answer.trimEnd().endsWith('?') ? ['_@a asks'] : []),
    ...(/\d/.test(answer) ? ['_@a counts'] : []),
    ...(/\n[-*\d]/.test(answer) ? ['_@a lists'] : []),
  ];
}
