// Whether two turns say the same thing twice, by sketches of their token ids.

export interface AnswerSketch {
  readonly prompt: ReadonlySet<number>;
  readonly answer: ReadonlySet<number>;
}

const shingleTokens = 4;
const nearFrom = 0.9;
/** A sketch keeps the smallest hashes: memory is bounded however long a prompt is. */
const sketchHashesMax = 256;

export function sketchOf(promptIds: readonly number[], answerIds: readonly number[]): AnswerSketch {
  return { prompt: shingles(promptIds), answer: shingles(answerIds) };
}

export function nearDuplicates(a: AnswerSketch, b: AnswerSketch): boolean {
  return jaccard(a.answer, b.answer) >= nearFrom && jaccard(a.prompt, b.prompt) >= nearFrom;
}

function shingles(ids: readonly number[]): ReadonlySet<number> {
  const hashes = new Set<number>();
  const last = Math.max(0, ids.length - shingleTokens);
  for (let start = 0; start <= last; start += 1) {
    // FNV-1a over the tokens.
    let hash = 0x811c9dc5;
    for (const id of ids.slice(start, start + shingleTokens)) hash = Math.imul(hash ^ id, 0x01000193) >>> 0;
    hashes.add(hash);
  }
  if (hashes.size <= sketchHashesMax) return hashes;
  return new Set([...hashes].sort((x, y) => x - y).slice(0, sketchHashesMax));
}

function jaccard(a: ReadonlySet<number>, b: ReadonlySet<number>): number {
  // Sets of very different size cannot be near, and most pairs are.
  if (Math.min(a.size, b.size) < nearFrom * Math.max(a.size, b.size)) return 0;
  let shared = 0;
  for (const value of a) if (b.has(value)) shared += 1;
  return shared / (a.size + b.size - shared);
}
