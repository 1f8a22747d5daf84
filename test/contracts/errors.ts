// What can go wrong before a contract is held against anything.

import { defineErrors } from '@backtalk/kit';

export const contractErrors = defineErrors('contracts', {
  installFailed: {
    code: 'install_failed',
    retry: 'never',
    message: (p: { command: string; output: string }) => `${p.command} failed: ${p.output}`,
  },
});
