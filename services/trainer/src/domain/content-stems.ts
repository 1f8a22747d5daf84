// Which words carry the meaning of an instruction.
// In: a hint. Out: the set of its content stems: no courtesy, no generic verbs, endings cut, close synonyms folded.
// Never looks at anything but the text.

/** Words that say that something is asked for, or that something is wrong, but not what is asked for. */
const emptyWords = new Set(
  (
    'a an and are as at be been but by can could do does did for from had has have i if in into is it its just me my no of off on or ' +
    'our please should so some than that the their them then there these they this those to too up us was we were what when ' +
    'which while will with would you your always never next time again from now way bit little much more most very really ' +
    'only all any each every thing something want wanted need needed like prefer try make made making keep kept use used using give gave ' +
    'write wrote written say said tell told reply replies replied respond responds response responses answer answers answered answering ' +
    'get got go let okay ok thanks thank instead rather sorry not dont don didnt doesnt isnt wasnt im ive id thats enough asked ask question'
  ).split(' '),
);

/** Synonyms that matter for the standing instructions people give most: length and form. */
const foldedWords = new Map([
  ['single', 'one'],
  ['1', 'one'],
  ['2', 'two'],
  ['3', 'three'],
  ['brief', 'short'],
  ['briefly', 'short'],
  ['briefer', 'short'],
  ['concise', 'short'],
  ['concisely', 'short'],
  ['terse', 'short'],
  ['shorter', 'short'],
  ['shortly', 'short'],
  ['shorten', 'short'],
  ['longer', 'long'],
  ['lengthy', 'long'],
  ['detailed', 'detail'],
  ['details', 'detail'],
  ['bulleted', 'bullet'],
  ['list', 'bullet'],
  ['lists', 'bullet'],
]);

/** "Not so long", "too long" and "less long" ask for the short. */
const longTurned =
  /\b(?:not|too|less|so|that|never|n't|dont|way)\s+(?:(?:so|too|that|as|this|be|much)\s+)*(?:long|lengthy)\b/g;

const wordEndings = ['ingly', 'edly', 'ments', 'ment', 'ings', 'ing', 'ies', 'ied', 'ness', 'ly', 'ed', 'es', 's', 'e'];
const stemCharsMin = 4;

export function contentStems(text: string): ReadonlySet<string> {
  const plain = text
    .toLowerCase()
    .replace(/[\u2018\u2019]/g, "'")
    .replace(longTurned, ' short ')
    .replace(/'/g, '');
  const words = plain.match(/[\p{L}\p{N}]+/gu) ?? [];
  const stems = new Set<string>();
  for (const word of words) {
    if (!emptyWords.has(word)) stems.add(foldedWords.get(word) ?? stem(word));
  }
  return stems;
}

function stem(word: string): string {
  for (const ending of wordEndings) {
    if (word.endsWith(ending) && word.length - ending.length >= stemCharsMin) return word.slice(0, -ending.length);
  }
  return word;
}
