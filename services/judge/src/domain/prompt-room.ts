// How much of each text has room in a prompt? In: texts, and tokens for all of them. Out: the texts, of which the longest keep head and tail.
// Tokens are not counted but estimated, on the safe side for the scripts of most models: an engine that disagrees says so. Pure.
import { clip } from '@backtalk/kit';

/** English has four and more, Chinese three. */
const bytesPerToken = 3;

export function tokensIn(text: string): number {
  return Math.ceil(Buffer.byteLength(text, 'utf8') / bytesPerToken);
}

/** Each may have as many as any other; what short ones leave goes to long ones. */
export function fitted(texts: readonly string[], tokensMax: number): string[] {
  const sizes = texts.map(tokensIn);
  const shares = new Array<number>(texts.length).fill(0);
  let room = Math.max(0, tokensMax);
  const byNeed = sizes.map((size, at) => ({ size, at })).sort((a, b) => a.size - b.size);
  for (const [done, { size, at }] of byNeed.entries()) {
    const share = Math.min(size, Math.floor(room / (byNeed.length - done)));
    shares[at] = share;
    room -= share;
  }
  return texts.map((text, at) => {
    const [size, share] = [sizes[at] ?? 0, shares[at] ?? 0];
    return share >= size ? text : clip(text, Math.floor((text.length * share) / size));
  });
}
