// Does an answer violate a user's wish? By the rule of the user's file; any of its operations is enough.
import type { UserFile, Violation } from './user-file.js';

/** What a person sees of an answer. */
export interface SeenAnswer {
  readonly text: string;
  /** False when it was cut by its token limit. */
  readonly ended: boolean;
}

export function violates({ violates_if: violations }: UserFile['rule'], answer: SeenAnswer): boolean {
  const text = answer.text.trim();
  return violations.some((violation) => holds(violation, text, answer.ended));
}

function holds(violation: Violation, text: string, ended: boolean): boolean {
  switch (violation.op) {
    case 'matches':
      return new RegExp(violation.pattern, violation.flags).test(text);
    case 'not_matches':
      return !new RegExp(violation.pattern, violation.flags).test(text);
    case 'words_over':
      return wordsOf(text) > violation.max;
    case 'words_under':
      return wordsOf(text) < violation.min;
    case 'cut':
      return !ended;
  }
}

function wordsOf(text: string): number {
  return text.split(/\s+/).filter(Boolean).length;
}
