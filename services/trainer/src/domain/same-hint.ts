// Do two hints say the same?
// In: two sets of content stems. Out: how alike they are, 0 to 1, and whether that is enough. Never decides what becomes of them.

/** From this share of the smaller hint's stems on, two hints are one lesson. */
const sameFrom = 0.5;
const numberWords: ReadonlySet<string> = new Set([
  'one',
  'two',
  'three',
  'four',
  'five',
  'six',
  'seven',
  'eight',
  'nine',
  'ten',
]);
/** Folded stems that ask for opposite things. */
const oppositeWords: readonly (readonly [string, string])[] = [
  ['short', 'long'],
  ['short', 'detail'],
];

/**
 * The overlap coefficient: "one sentence" is wholly inside "one short sentence, without a list".
 * The Jaccard share breaks ties, so that of two homes a hint takes the closer one.
 */
export function likeness(a: ReadonlySet<string>, b: ReadonlySet<string>): number {
  if (a.size === 0 || b.size === 0 || contradict(a, b)) return 0;
  const shared = [...a].filter((stem) => b.has(stem)).length;
  const overlap = shared / Math.min(a.size, b.size);
  const jaccard = shared / (a.size + b.size - shared);
  return 0.9 * overlap + 0.1 * jaccard;
}

export function saysTheSame(a: ReadonlySet<string>, b: ReadonlySet<string>): boolean {
  return likeness(a, b) >= sameFrom;
}

function contradict(a: ReadonlySet<string>, b: ReadonlySet<string>): boolean {
  const numbersA = [...a].filter((stem) => isNumber(stem));
  const numbersB = [...b].filter((stem) => isNumber(stem));
  if (numbersA.length > 0 && numbersB.length > 0 && !numbersA.some((number) => numbersB.includes(number))) return true;
  return oppositeWords.some(([left, right]) => (a.has(left) && b.has(right)) || (a.has(right) && b.has(left)));
}

function isNumber(stem: string): boolean {
  return numberWords.has(stem) || /^\d+$/.test(stem);
}
