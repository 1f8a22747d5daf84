// Why a contract cannot be held against an engine.
import { defineErrors } from '@backtalk/kit';

export const contractErrors = defineErrors('contracts', {
  installFailed: {
    code: 'engine_install_failed',
    retry: 'never',
    message: (p: { output: string }) => `vLLM cannot be had here: ${p.output}`,
  },
});
