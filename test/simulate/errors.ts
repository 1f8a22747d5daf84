// Why a learning run cannot be measured.
import { defineErrors } from '@backtalk/kit';

export const simulateErrors = defineErrors('simulate', {
  scorerFailed: {
    code: 'scorer_failed',
    retry: 'never',
    message: (p: { why: string }) =>
      `The scorer stopped: ${p.why}. Its packages are installed by: node deploy/start.mjs setup --with scoring`,
  },
});
