// The errors that any service may meet, because the kit raises them.
import { defineErrors } from './define-errors.js';

export const kitErrors = defineErrors('kit', {
  internal: {
    code: 'internal',
    status: 500,
    retry: 'later',
    message: () => 'Something went wrong inside the service; the log has the cause.',
  },
  cancelled: {
    code: 'cancelled',
    status: 499,
    retry: 'later',
    message: () => 'The work was cancelled before it was done.',
  },
  deadlineExceeded: {
    code: 'deadline_exceeded',
    status: 504,
    retry: 'later',
    message: () => 'The work took longer than its deadline.',
  },
  unreachable: {
    code: 'unreachable',
    status: 503,
    retry: 'later',
    message: (p: { reason: string }) => `A part that is needed cannot be reached (${p.reason}).`,
  },
  configInvalid: {
    code: 'config_invalid',
    retry: 'stop',
    message: (p: { problems: readonly string[] }) => p.problems.join('\n'),
  },
  addressInUse: {
    code: 'address_unavailable',
    retry: 'stop',
    message: (p: { address: string; reason: string }) => `Cannot listen on ${p.address} (${p.reason}).`,
  },
  stopIncomplete: {
    code: 'stop_incomplete',
    retry: 'stop',
    message: (p: { parts: readonly string[] }) => `These parts did not stop cleanly: ${p.parts.join(', ')}.`,
  },
});
