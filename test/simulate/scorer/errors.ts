// Why answers cannot be scored.
import { defineErrors } from '@backtalk/kit';

export const scorerErrors = defineErrors('scorer', {
  scorerFailed: {
    code: 'scorer_failed',
    retry: 'never',
    message: (p: { why: string }) =>
      `The scorer stopped: ${p.why}. Its packages are installed by: node deploy/start.mjs setup --with scoring`,
  },
});
