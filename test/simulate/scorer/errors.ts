// Why answers cannot be scored.
import { defineErrors } from '@backtalk/kit';

export const scorerErrors = defineErrors('scorer', {
  scorerFailed: {
    code: 'scorer_failed',
    retry: 'never',
    message: (p: { why: string }) =>
      `The scorer stopped: ${p.why}. Its packages are installed by: node deploy/start.mjs setup --with scoring`,
  },
  ruleUnread: {
    code: 'rule_unread',
    retry: 'never',
    message: (p: { why: string }) =>
      `Answers cannot be scored by this user's rule: ${p.why}. Write it so that Python's re reads it, too.`,
  },
  unscored: {
    code: 'answers_unscored',
    retry: 'never',
    message: (p: { unscored: number; answers: number }) =>
      `The scorer's model gave no usable score to ${String(p.unscored)} of ${String(p.answers)} answers: it cannot score them (--scorer-model names another).`,
  },
});
