// Does a sentence only point at what was said or answered before ("always like that")? In: a sentence that holds beyond its turn. Out: whether
// it has no word of its own that a later answer could follow. Where it points with words that are not known here, it counts as one that has. Pure.
import { isEmptyIn } from './empty-words.js';
import { besidesLastingWords } from './lasting-words.js';

const pointing = new Set(
  (
    'this that these those it one ones such same like way so exactly just again ' +
    'das dies diese dieses es genau genauso gleich weiter ça cela ceci ainsi pareil comme même exactement manière façon ' +
    'así eso esto igual mismo exactamente manera così questo quello stesso modo esattamente zo dat dit precies hetzelfde ' +
    'assim isso isto mesmo exatamente jeito maneira'
  ).split(' '),
);

export function onlyPoints(sentence = ''): boolean {
  const isEmpty = isEmptyIn(wordsOf(sentence));
  const rest = wordsOf(besidesLastingWords(sentence));
  // Forms of address are small words, too: "from now on du, not Sie".
  const points = rest.length === 0 || rest.some((word) => pointing.has(word));
  return points && rest.every((word) => pointing.has(word) || isEmpty(word));
}

function wordsOf(text: string): string[] {
  const plain = text
    .normalize('NFC')
    .toLowerCase()
    .replaceAll(/n't(?![\p{L}])/gu, ' not');
  return plain.match(/[\p{L}\p{M}\p{N}]+/gu) ?? [];
}
