// Why a benchmark cannot be run. The others go on.
import { defineErrors } from '@backtalk/kit';

export const benchErrors = defineErrors('bench', {
  usage: {
    code: 'bench_usage',
    retry: 'never',
    message: (p: { why: string }) => `${p.why} See --help.`,
  },
  requestFailed: {
    code: 'bench_request_failed',
    retry: 'never',
    message: (p: { what: string; failed: number; of: number }) =>
      `${p.failed} of ${p.of} requests to ${p.what} did not come to their end.`,
  },
  programFailed: {
    code: 'bench_program_failed',
    retry: 'never',
    message: (p: { program: string; output: string }) => `${p.program} failed: ${p.output}`,
  },
  unreadable: {
    code: 'bench_unreadable',
    retry: 'never',
    message: (p: { what: string }) => `${p.what} is not what the benchmark can read.`,
  },
  noVotes: {
    code: 'bench_no_votes',
    retry: 'never',
    message: (p: { reasons: string }) => `No vote of the judge was valid (${p.reasons}).`,
  },
  nothingTrained: {
    code: 'bench_nothing_trained',
    retry: 'never',
    message: (p: { steps: number; why: string }) => `No version came of ${p.steps} steps: ${p.why}`,
  },
  refused: {
    code: 'bench_version_refused',
    retry: 'never',
    message: (p: { version: string; why: string }) => `${p.version} was burned in place of served: ${p.why}`,
  },
});
