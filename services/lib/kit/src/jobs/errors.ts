// What can go wrong between a service and its jobs.
import { defineErrors } from '../errors/index.js';

export const jobErrors = defineErrors('jobs', {
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
    message: () => 'Valkey has no room left: nothing more is queued until space is freed.',
  },
  valkeyFailed: {
    code: 'valkey_failed',
    retry: 'later',
    message: (p: { doing: string }) => `Valkey refused a command (${p.doing}).`,
  },
  /** What the queue keeps as the reason is the message. */
  jobFailed: {
    code: 'job_failed',
    retry: 'later',
    message: (p: { reason: string }) => p.reason,
  },
  jobInvalid: {
    code: 'job_invalid',
    retry: 'never',
    message: (p: { queue: string; reason: string }) => `A job of queue ${p.queue} is not as it must be: ${p.reason}.`,
  },
});
