import { defineErrors } from '../errors/backtalk-error.js';

export const valkeyErrors = defineErrors('valkey', {
  valkeyUnavailable: {
    code: 'valkey_unavailable',
    status: 503,
    retry: 'later',
    message: (p: { doing: string }) => `Valkey did not answer in time (${p.doing}).`,
  },
  valkeyEvicts: {
    code: 'valkey_evicts',
    retry: 'stop',
    message: (p: { policy: string }) =>
      `Valkey runs with maxmemory-policy ${p.policy} and would drop jobs: start it with --maxmemory-policy noeviction.`,
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
