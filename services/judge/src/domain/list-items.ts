// Lists that people write under what introduces them. In: lines. Out: what an item says; the lines with each short list put behind its
// introduction ("From now on: no tables; metric units"), since an item alone does not say when it holds. Pure.
import { wordingCharsMax } from '@backtalk/kit';

/** A longer one is a paragraph. */
const item = /^ {0,3}(?:[-*\u2022\u2013]|\d{1,2}[.)]) +(\S.{0,79})$/u;

export function itemOfList(line = ''): string | undefined {
  return item.exec(line.trimEnd())?.[1]?.replace(/[.,;]$/, '');
}

/** @param lines without empty ones */
export function withListsJoined(lines: readonly string[]): string[] {
  const joined: string[] = [];
  let isOpen = false;
  for (const line of lines) {
    const said = itemOfList(line);
    const before = joined.at(-1) ?? '';
    const begins = before.endsWith(':');
    const whole = `${before}${begins ? '' : ';'} ${said ?? ''}`;
    isOpen = said !== undefined && (begins || isOpen) && whole.length <= wordingCharsMax;
    if (isOpen) joined[joined.length - 1] = whole;
    else joined.push(line.trim());
  }
  return joined;
}
