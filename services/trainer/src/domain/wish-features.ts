// What a wish asks for, as features with values: what is wanted or not, how long, in which language, how many of what. Negation turns a value;
// it never disappears.
import { clip } from '@backtalk/kit';
import { empty, fewer, goesWithoutSaying, meaningOf, negations, phrases } from './wish-words.js';

/**
 * By name: `~axis` with one of its values, or `!value`; `=concept` or a word, with `+`, `-` or `<` (less of it); `#` and what is counted, with
 * `= 2`, `max 50` or `min 3`.
 */
export type WishFeatures = ReadonlyMap<string, string>;

type Features = Map<string, string>;

/** An exclamation before the wish itself. */
const exclamation = /^(?:no|nope|non|nein|nee|não)\s*[,.!:;–—-]/u;
const clauses =
  /[.!?;:,\n()–—"“”]+| instead of | rather than | (?:and|but|y|und|et|e) (?=(?:no|not|don't|never|nicht|kein\p{L}*|pas|non?) )/u;
const turning = / (?:instead of|rather than) /gu;

/** More than a wording holds. Features are held against each other, so that a long text would take more than linear time. */
export const wishCharsMax = 512;

export function wishFeatures(wish: string): WishFeatures {
  const features: Features = new Map();
  for (const clause of plain(clip(wish, wishCharsMax)).split(clauses)) readClause(tokensOf(clause), features);
  for (const beside of [...features.keys()])
    for (const key of features.keys()) if (key !== beside && goesWithoutSaying(key, beside)) features.delete(key);
  // "Only two sentences" says no more than "two sentences".
  if ([...features.keys()].some((key) => /^[#~]/.test(key))) features.delete('=only');
  return features;
}

/** "Contractions like don't": an example of what is asked for, whose negation asks for nothing. */
const example = / (?:like|such as) \p{L}+n't(?= |$).*$/u;

function tokensOf(clause: string): string[] {
  // Quotation marks are no part of a word; apostrophes within one are.
  const words = clause.replace(example, '').replace(/(?<=^|\s)['-]|['-](?=\s|$)/g, ' ');
  return words.match(/[\p{L}\p{N}'+#$€£¥/-]+/gu) ?? [];
}

function plain(wish: string): string {
  let text = wish
    .toLowerCase()
    .replace(/[\u2018\u2019]/g, "'")
    .trim()
    .replace(exclamation, ' ')
    .replace(/(?<!\p{L})n'(?=\p{L})/gu, 'ne ')
    .replace(/\b(one|two|three|four|five|\d+)-(?=\p{L}{3})/gu, '$1 ')
    .replace(turning, ', not ');
  for (const [pattern, token] of phrases) text = text.replace(pattern, token);
  return text;
}

function readClause(tokens: readonly string[], features: Features): void {
  const counted = readCounts(tokens, features);
  let negated = false;
  let isLess = false;
  let spoken: string[] = [];
  for (const [index, token] of tokens.entries()) {
    const isNegation = isNegationAt(tokens, index) && (!tooWords.has(token) || isTooMuch(tokens, index));
    if (isNegation || fewer.has(token)) {
      // A negation behind what it is about opens anew; two before it cancel each other. "Not too long" refuses what is long.
      if (spoken.length > 0) [negated, isLess] = [false, false];
      if (isNegation) negated = tooWords.has(token) ? true : !negated;
      else isLess = true;
      if (index < tokens.length - 1 || spoken.length === 0) spoken = [];
      else for (const key of spoken) turn(features, key);
    } else if (!counted.has(index) && !isForm(token)) {
      const [key, value] = featureOf(token, negated, isLess);
      if (key === '=explain' && !negated && isCarried(tokens, index)) continue;
      // "TypeScript, not JavaScript" asks for the one.
      if (!(value.startsWith('!') && features.has(key))) features.set(key, value);
      spoken.push(key);
      // "Don't explain the code" wants the code.
      if (key === '=explain') [negated, isLess] = [false, false];
    }
  }
  if (negated && spoken.length === 0) turnLast(tokens, features);
}

/** "Ne" negates by itself in a dozen languages, and in French with "plus"; with "pas" it says the same twice, with "que" it is "only". */
function isNegationAt(tokens: readonly string[], at: number): boolean {
  const token = tokens[at] ?? '';
  // "Too little detail"; a "little table" is a small one.
  if (token === 'little' && !measured.has(tokens[at - 1] ?? '')) return false;
  if (token === 'ne') return !tokens.some((other) => negations.has(other) || /^qu[e']/.test(other));
  return negations.has(token);
}

const measured = new Set(['too', 'so', 'very', 'how', 'as']);
const tooWords = new Set(['too', 'zu', 'trop', 'demasiado', 'demasiada', 'troppo', 'demais', 'zuviel']);

/** Not "that, too" and not "du zu mir". */
function isTooMuch(tokens: readonly string[], at: number): boolean {
  const next = tokens[at + 1];
  if (next === undefined) return false;
  return tokens[at] !== 'zu' || keyOf(next).startsWith('~') || /^(?:viel|wenig)/.test(next);
}

function turn(features: Features, key: string): void {
  const value = features.get(key);
  if (value !== undefined) features.set(key, negationOf(key, value));
}

/** "Explain it simply" is about how, "explain the code" about what. */
function isCarried(tokens: readonly string[], at: number): boolean {
  const rest = tokens.slice(at + 1);
  const next = rest[0];
  return (
    next === undefined ||
    /^(?:it|this|that|things?|everything|to|me|in|like|so|as|with|by|using|stepwise|es|mir|le|lo)$/.test(next) ||
    /^~(?:simple|length|register)$/.test(keyOf(next))
  );
}

/** The clause ends in its negation ("emojis never again"). */
function turnLast(tokens: readonly string[], features: Features): void {
  const negation = tokens.findIndex((token) => negations.has(token));
  for (const token of tokens.slice(0, negation)) if (!isForm(token)) turn(features, featureOf(token, false, false)[0]);
}

/** "Emoji-free", "emojifrei", "emojisiz": endings that no word for form has otherwise, in the languages whose words are known here. */
const without = /(?:less|free|frei(?:e[nrs]?)?|s[ıiuü]z)$/u;

function featureOf(token: string, negated: boolean, isLess: boolean): [key: string, value: string] {
  const language = languages.get(token);
  if (language !== undefined) return ['~language', negated ? `!${language}` : language];
  const { axis, value } = meaningOf(token) ?? { axis: token, value: '+' };
  if (axis.startsWith('=') && without.test(token)) return [axis, negated ? value : negationOf(axis, value)];
  if (!isLess) return [axis, negated ? negationOf(axis, value) : value];
  if (/^[+-]$/.test(value) && axis.startsWith('~')) return [axis, negated ? value : negationOf(axis, value)];
  if (axis.startsWith('~')) return [axis, negated ? value : `<${value}`];
  return [axis, negated ? '+' : '<'];
}

const otherValues = new Map([
  ['+', '-'],
  ['-', '+'],
  ['<', '+'],
  ['metric', 'imperial'],
  ['imperial', 'metric'],
  ['celsius', 'fahrenheit'],
  ['fahrenheit', 'celsius'],
  ['lower', 'upper'],
  ['upper', 'lower'],
  ['active', 'passive'],
  ['passive', 'active'],
  ['warm', 'cold'],
  ['cold', 'warm'],
  ['bullets', 'prose'],
  ['prose', 'bullets'],
  ['funny', 'serious'],
  ['serious', 'funny'],
]);

function negationOf(key: string, value: string): string {
  if (value.startsWith('!')) return value.slice(1);
  return otherValues.get(value) ?? `!${value}`;
}

const numbers = new Map(
  [
    'one two three four five six seven eight nine ten eleven twelve',
    'eins zwei drei vier fünf sechs sieben acht neun zehn elf zwölf',
    'seul deux trois quatre cinq six sept huit neuf dix onze douze',
    'uno dos tres cuatro cinco seis siete ocho nueve diez - doce',
    'uno - tre quattro cinque - sette otto nove dieci undici dodici',
  ].flatMap((row) => row.split(' ').map((word, index) => [word, String(index + 1)] as const)),
);
for (const word of ['single', 'einzig', 'einzigen', 'einziger', 'seule', 'sola', 'único', 'única'])
  numbers.set(word, '1');
for (const [word, number] of [
  ['fifteen', '15'],
  ['twenty', '20'],
  ['thirty', '30'],
  ['forty', '40'],
  ['fifty', '50'],
  ['hundred', '100'],
  ['zwanzig', '20'],
  ['dreißig', '30'],
  ['fünfzig', '50'],
  ['hundert', '100'],
  ['vingt', '20'],
  ['trente', '30'],
  ['cinquante', '50'],
  ['cent', '100'],
  ['veinte', '20'],
  ['treinta', '30'],
  ['cincuenta', '50'],
  ['cien', '100'],
] as const)
  numbers.set(word, number);
/** They count only what an answer's length is counted in. */
const articles = new Set(['a', 'an', 'ein', 'eine', 'einem', 'einen', 'un', 'une', 'una', 'um', 'uma', 'een']);
export const lengthMeasures = new Set(['#=sentence', '#=word', '#=paragraph', '#=line']);

const measuredWithin = 3;

function readCounts(tokens: readonly string[], features: Features): ReadonlySet<number> {
  const counted = new Set<number>();
  let bound = '=';
  for (const [index, token] of tokens.entries()) {
    // "Never more than" is a bound from above.
    if (token === '#max' || token === '#min') bound = isNegated(tokens, index) ? otherBound(token) : token.slice(1);
    const number = numberOf(token) ?? (articles.has(token) ? '1' : undefined);
    if (number === undefined) continue;
    const measure = measureAt(tokens, index);
    const key = `#${measure === undefined ? '' : keyOf(tokens[measure] ?? '')}`;
    if (articles.has(token) && !lengthMeasures.has(key)) continue;
    if (measure !== undefined) counted.add(measure);
    const value = `${negations.has(tokens[index - 1] ?? '') ? '!' : ''}${bound} ${number}`;
    features.set(
      key,
      [features.get(key), value]
        .filter((part) => part !== undefined && part !== value)
        .concat(value)
        .join(', '),
    );
    bound = '=';
  }
  return counted;
}

function isNegated(tokens: readonly string[], at: number): boolean {
  return tokens.slice(0, at).filter((token) => negations.has(token)).length % 2 === 1;
}

function otherBound(bound: string): string {
  return bound === '#max' ? 'min' : 'max';
}

function numberOf(token: string): string | undefined {
  return numbers.get(token) ?? /^\d+$/.exec(token)?.[0];
}

function keyOf(token: string): string {
  return meaningOf(token)?.axis ?? token;
}

/** Where the word is that a number counts: the next one with content, else the one before it ("version 3"). */
function measureAt(tokens: readonly string[], at: number): number | undefined {
  const counts = (index: number): boolean => {
    const token = tokens[index];
    return token !== undefined && !isForm(token) && !keyOf(token).startsWith('~') && !languages.has(token);
  };
  for (let index = at + 1; index <= at + measuredWithin; index += 1) if (counts(index)) return index;
  return counts(at - 1) ? at - 1 : undefined;
}

function isForm(token: string): boolean {
  return (
    token.startsWith('#m') ||
    empty.has(token) ||
    negations.has(token) ||
    fewer.has(token) ||
    articles.has(token) ||
    numberOf(token) !== undefined ||
    !/[\p{L}\p{N}$€£¥]/u.test(token)
  );
}

const languages = languageNames();

/** Every language's name, in the names that speakers of the largest ones give it: no list of our own. */
function languageNames(): ReadonlyMap<string, string> {
  const names = new Map<string, string>();
  const letters = Array.from({ length: 26 }, (_, index) => String.fromCharCode(97 + index));
  const codes = letters.flatMap((first) => letters.map((second) => first + second));
  for (const spoken of ['en', 'de', 'fr', 'es', 'it', 'pt', 'nl']) {
    const display = new Intl.DisplayNames(spoken, { type: 'language', fallback: 'none' });
    for (const code of codes) {
      const name = display.of(code)?.toLowerCase();
      if (name !== undefined && name.length > 2 && !names.has(name)) names.set(name, code);
    }
  }
  return names;
}
