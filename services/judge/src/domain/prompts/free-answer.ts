// Reads what a model wrote for a free vote. In: its answer. Out: the grade in the last box and the hint, or nothing
// when there is no grade. Pure.
import type { Verdict } from '../verdict-value.js';

export interface FreeAnswer {
  readonly verdict: Verdict;
  /** Empty when the model saw none. */
  readonly hint: string;
}

export function readFreeAnswer(text: string): FreeAnswer | undefined {
  const boxes = [...text.matchAll(/\\boxed\{\s*(?:\\text\{)?\s*([+\u2212-]?\s*[01])\s*\}?\s*\}/gu)];
  const last = boxes.at(-1)?.[1]?.replaceAll(/\s/g, '').replace('\u2212', '-');
  if (last === undefined) return undefined;
  const value = Number(last);
  return { verdict: value > 0 ? 1 : value < 0 ? -1 : 0, hint: hintIn(text) };
}

function hintIn(text: string): string {
  const [, hint = ''] = /\[HINT_START\]([\s\S]*?)\[HINT_END\]/.exec(text) ?? [];
  const trimmed = hint.trim();
  return /^(?:none|no hint|n\/a|nothing|empty|-)?\.?$/i.test(trimmed) ? '' : trimmed;
}
