import { defineErrors } from '../errors/backtalk-error.js';

export const valkeyErrors = defineErrors('valkey', {
  valkeyUnavailable: {
    code: 'valkey_unavailable',
    status: 503,
    retry: 'later',
    message: (p: { doing: string }) => `Valkey did not answer in time (${p.doing}).`,
  },
  valkeyFull: {
    code: 'valkey_full',
    status: 503,
    retry: 'later',
    message: () => 'Valkey has no room left: nothing more is stored until space is freed.',
  },
  valkeyFailed: {
    code: 'valkey_failed',
    retry: 'later',
    message: (p: { doing: string }) => `Valkey refused a command (${p.doing}).`,
  },
});
