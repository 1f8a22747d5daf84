// What a wish asks for, as features with values: what is wanted or not ("emojis": +, −), how long, in which language, how many of what.
// Negation turns a value; it never disappears. Words are general ones of a few languages: what they miss makes two wishes different, not same.

/** By name: a word; `~length`, `~register`, `~units`, `~language`; or `#` and what is counted. */
export type WishFeatures = ReadonlyMap<string, string>;

const words = (text: string): ReadonlySet<string> => new Set(text.split(' '));

/** They turn what is said in the same clause. */
const negations = words(
  "no not never none without don't dont doesn't isn't can't cannot stop avoid quit skip drop omit too less fewer " +
    'kein keine keinen keiner nicht nie niemals ohne zu weniger pas jamais sans aucun aucune trop moins ' +
    'nunca sin ningún demasiado menos non mai senza troppo meno não sem nenhum nooit geen niet zonder',
);
/** A bound, not a refusal: "no more than eight words" wants eight words. */
const bounds = /\b(?:no|not) (?:more|less|fewer|longer|shorter) than\b/g;
/** An exclamation before the wish itself. */
const exclamation = /^(?:no|nope|non|nein|nee|não)\s*[,.!:;–—-]/u;

const axes = new Map<string, readonly [axis: string, value: string]>(
  Object.entries({
    '~length -':
      'short shorter brief briefly briefer concise concisely terse succinct kurz kürzer knapp court courte bref breve corto corta',
    '~length +':
      'long longer lengthy detailed detail details thorough thoroughly verbose elaborate lang länger ausführlich détaillé largo larga detallado',
    '~register +': 'formal formally polite förmlich formel',
    '~register -': 'informal informally casual casually colloquial locker informel',
    '~units +': 'metric metrisch métrique métrico',
    '~units -': 'imperial imperiale',
  }).flatMap(([named, list]) => {
    const [axis = '', value = ''] = named.split(' ');
    return list.split(' ').map((word) => [word, [axis, value]] as const);
  }),
);

const numbers = new Map(
  [
    'one two three four five six seven eight nine ten',
    'ein zwei drei vier fünf sechs sieben acht neun zehn',
    'un deux trois quatre cinq six sept huit neuf dix',
    'uno dos tres cuatro cinco seis siete ocho nueve diez',
  ].flatMap((row) => row.split(' ').map((word, index) => [word, String(index + 1)] as const)),
)
  .set('single', '1')
  .set('eine', '1')
  .set('einem', '1')
  .set('une', '1')
  .set('una', '1');

/** That something is asked for, of whom and how politely, but not what. */
const empty = words(
  "a an the this that that's it's these those it its i me my we us you your yours they them is are was were be been am as at by for from in into " +
    'of on or and to with when where which what while if then so just only please kindly thanks thank thx ok okay hey sorry want wanted ' +
    "need needed like would could should can will shall must do does did have has had i'd i'm i'll let let's say said tell told asked ask " +
    'always ever every each time times now next again future onwards use uses used using give gives given giving make makes made making ' +
    'keep keeps kept keeping put write writes written writing get got answer answers answered answering reply replies replying respond ' +
    'responds response responses responding rather instead most least more much many very really quite bit way there here all any some but ' +
    'know prefer try go out up than ' +
    'bitte immer antworte antworten antwort schreib schreibe ab jetzt der die das und oder auf mit von für mir ich du deine ' +
    'toujours réponds réponse répondre en le la les des de du moi je tu ta tes ton et ou avec pour stp ' +
    'siempre responde respuesta por favor el los las del y o con para mi tu tus',
);

const languages = languageNames();

export function wishFeatures(wish: string): WishFeatures {
  const features = new Map<string, string>();
  const plain = wish
    .toLowerCase()
    .replace(/[\u2018\u2019]/g, "'")
    .trim()
    .replace(exclamation, ' ');
  for (const clause of plain.replace(bounds, ' ').split(/[.!?;:,\n()–—]+/u)) readClause(clause, features);
  return features;
}

function readClause(clause: string, features: Map<string, string>): void {
  const tokens = clause.match(/[\p{L}\p{N}'+#-]+/gu) ?? [];
  const turned = tokens.filter((token) => negations.has(token)).length % 2 === 1;
  const counted = new Set<number>();
  for (const [index, token] of tokens.entries()) {
    const number = numbers.get(token) ?? /^\d+$/.exec(token)?.[0];
    if (number === undefined) continue;
    const measure = measureAt(tokens, index);
    if (measure !== undefined) counted.add(measure);
    const key = `#${measure === undefined ? '' : (tokens[measure] ?? '')}`;
    features.set(key, [features.get(key), number].filter((value) => value !== undefined).join(','));
  }
  for (const [index, token] of tokens.entries()) {
    if (counted.has(index) || isForm(token)) continue;
    const language = languages.get(token);
    const [axis, value] = axes.get(token) ?? [token, '+'];
    if (language === undefined) features.set(axis, turned ? opposed(value) : value);
    else features.set('~language', `${turned ? '-' : ''}${language}`);
  }
}

const measuredWithin = 3;

/** Where the word is that a number counts: the next one with content, else the one before it ("version 3"). */
function measureAt(tokens: readonly string[], at: number): number | undefined {
  const counts = (index: number): boolean => {
    const token = tokens[index];
    return token !== undefined && !isForm(token) && !axes.has(token) && !languages.has(token);
  };
  for (let index = at + 1; index <= at + measuredWithin; index += 1) if (counts(index)) return index;
  return counts(at - 1) ? at - 1 : undefined;
}

function isForm(token: string): boolean {
  return empty.has(token) || negations.has(token) || numbers.has(token) || /^\d+$/.test(token);
}

export function opposed(value: string): string {
  return value === '+' ? '-' : '+';
}

/** Every language's name, in the names that speakers of the largest ones give it: no list of our own. */
function languageNames(): ReadonlyMap<string, string> {
  const names = new Map<string, string>();
  const letters = Array.from({ length: 26 }, (_, index) => String.fromCharCode(97 + index));
  const codes = letters.flatMap((first) => letters.map((second) => first + second));
  for (const spoken of ['en', 'de', 'fr', 'es', 'it', 'pt', 'nl']) {
    const display = new Intl.DisplayNames(spoken, { type: 'language', fallback: 'none' });
    for (const code of codes) {
      const name = display.of(code)?.toLowerCase();
      if (name !== undefined && !names.has(name)) names.set(name, code);
    }
  }
  return names;
}
