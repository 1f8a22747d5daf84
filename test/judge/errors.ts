// What is wrong with a set of labelled next states, in the words that its author reads.
import { defineErrors } from '@backtalk/kit';

export const judgeSetErrors = defineErrors('test', {
  badLine: {
    code: 'labelled_line_broken',
    retry: 'never',
    message: (p: { number: number; why: string }) => `Line ${String(p.number)} cannot be used: ${p.why}.`,
  },
  emptySet: {
    code: 'labelled_set_empty',
    retry: 'never',
    message: () => 'The file has no line. Each is one labelled turn: {"context", "answer", "next", "label", "hint"}.',
  },
});
