// How the work of reading a text grows with its length. In: a reader and a way to make texts. Out: how many times as much
// each character of a megabyte costs as each of a sixteenth: about 1 where it is the same, 16 where each costs as much as
// there are. Between them lies room for what the machine does besides.
import { readFileSync } from 'node:fs';
import { z } from 'zod';

const megabyte = 1_000_000;
const times = 16;
/** Too little to be measured is nothing. */
const leastMicroseconds = 4_000;
/** More than the same: looked at again. */
const suspicious = 2;
const attempts = 5;

export function growth(read: (text: string) => unknown, make: (characters: number) => string): number {
  const small = make(megabyte / times);
  const large = make(megabyte);
  let [ofSmall, ofLarge, ratio] = [Infinity, Infinity, Infinity];
  // Other work of the machine, such as collecting garbage, only adds: the least of several is nearest to the reader's own.
  for (let attempt = 0; attempt < attempts && ratio >= suspicious; attempt += 1) {
    ofLarge = Math.min(
      ofLarge,
      workOf(() => read(large)),
    );
    ofSmall = Math.min(
      ofSmall,
      workOf(() => read(small)),
    );
    ratio = ofLarge / times / Math.max(ofSmall, leastMicroseconds);
  }
  return ratio;
}

function workOf(work: () => unknown): number {
  const before = process.cpuUsage();
  work();
  const { user, system } = process.cpuUsage(before);
  return user + system;
}

const pieces = z
  .array(z.string())
  .parse(JSON.parse(readFileSync(new URL('../../hostile-pieces.json', import.meta.url), 'utf8')));

/** Texts on which careless patterns begin anew at every character, each repeated to a length; the worker's tests read the same file. */
export const hostileTexts: readonly (readonly [string, (characters: number) => string])[] = pieces.map(
  (piece) => [piece, (characters) => piece.repeat(Math.ceil(characters / piece.length)) + 'x'] as const,
);
