// Everything that a command can refuse, in the words that the person reads; the code decides the exit status.
import { defineErrors } from '@backtalk/kit';

export const cliErrors = defineErrors('cli', {
  notRunning: {
    code: 'not_running',
    retry: 'never',
    message: (p: { where: string }) =>
      `Backtalk does not run here (${p.where}). Start it with: npm start — or name its folder: --data DIR`,
  },
  adminNeeded: {
    code: 'admin_needed',
    retry: 'never',
    message: (p: { user: string }) =>
      `Only the broker's user admin may do this, and ${p.user} is not: set BACKTALK_NATS_URL, BACKTALK_NATS_USER=admin and BACKTALK_NATS_PASSWORD.`,
  },
  copiesNeeded: {
    code: 'copies_needed',
    retry: 'never',
    message: () =>
      'BACKTALK_PROFILE is production and BACKTALK_STREAM_REPLICAS is 1: set it to 3, on a broker of three servers.',
  },
  badArgument: {
    code: 'bad_argument',
    retry: 'never',
    message: (p: { name: string; value: string; wanted: string }) => `${p.name} '${p.value}' is not ${p.wanted}.`,
  },
  refused: {
    code: 'refused',
    retry: 'never',
    message: (p: { what: string; status: number; why: string }) =>
      `${p.what} was refused (${String(p.status)}): ${p.why}`,
  },
  unreachable: {
    code: 'unreachable',
    retry: 'never',
    message: (p: { what: string; url: string }) =>
      `${p.what} does not answer at ${p.url}. Is Backtalk running? (npx backtalk status)`,
  },
  scorerFailed: {
    code: 'scorer_failed',
    retry: 'never',
    message: (p: { why: string }) =>
      `The scorer stopped: ${p.why}. Its packages are installed by: node deploy/start.mjs setup --with scoring`,
  },
  measuresNotBuilt: {
    code: 'measures_not_built',
    retry: 'never',
    message: (p: { file: string }) =>
      `The judge is measured from a checkout whose tests are built, and ${p.file} is not there: npx turbo run build --filter=@backtalk/test`,
  },
  measureFailed: {
    code: 'measure_failed',
    retry: 'never',
    message: (p: { why: string }) => `The judge could not be measured: ${p.why}.`,
  },
  nothingFound: {
    code: 'nothing_found',
    retry: 'never',
    message: (p: { what: string }) => `There is no ${p.what}.`,
  },
});

/** 0 done · 1 failed · 2 wrong use · 3 Backtalk does not run. */
export const exitStatus = { done: 0, failed: 1, wrongUse: 2, notRunning: 3 } as const;

export function exitStatusOf(code: string): number {
  if (code === 'bad_argument' || code === 'config_invalid' || code === 'admin_needed' || code === 'copies_needed')
    return exitStatus.wrongUse;
  if (code === 'not_running' || code === 'unreachable') return exitStatus.notRunning;
  return exitStatus.failed;
}
