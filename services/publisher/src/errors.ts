// What the publisher cannot do, and why.
import { defineErrors } from '@backtalk/kit';

export const publisherErrors = defineErrors('publisher', {
  noLoader: {
    code: 'no_loader',
    status: 503,
    retry: 'later',
    message: (p: { policy: string }) => `No engine of policy ${p.policy} is ready, so nothing can be loaded.`,
  },
  loadersAway: {
    code: 'loaders_away',
    status: 503,
    retry: 'later',
    message: (p: { version: string; codes: readonly string[]; holding: number; asked: number }) =>
      `${p.holding} of ${p.asked} engines hold ${p.version} (${p.codes.join(', ')}): it waits for half of them.`,
  },
  notDecided: {
    code: 'not_decided',
    status: 503,
    retry: 'later',
    message: (p: { cause: string }) => `A trained version cannot be decided yet, and is tried again: ${p.cause}`,
  },
  manifestInvalid: {
    code: 'manifest_invalid',
    status: 409,
    retry: 'never',
    message: (p: { version: string }) => `The manifest of ${p.version} cannot be read.`,
  },
  caseGone: {
    code: 'case_gone',
    status: 404,
    retry: 'never',
    message: (p: { turn: string }) => `The log no longer holds all of ${p.turn}, which a lesson has for a case.`,
  },
  notLeading: {
    code: 'not_leading',
    status: 503,
    retry: 'later',
    message: () => 'No publisher leads here, or another does: ask again in a moment.',
  },
  neverAnswered: {
    code: 'never_answered',
    status: 404,
    retry: 'never',
    message: (p: { version: string }) =>
      `${p.version} cannot answer again: it never did, or it is burned (npx backtalk versions lists them).`,
  },
  notUndecided: {
    code: 'not_undecided',
    status: 409,
    retry: 'never',
    message: (p: { version: string }) =>
      `${p.version} is no candidate that waits to be decided (npx backtalk versions lists them). What answers is rolled back: npx backtalk rollback`,
  },
  cannotAnswer: {
    code: 'cannot_answer',
    status: 409,
    retry: 'never',
    message: (p: { version: string; codes: readonly string[] }) =>
      `No engine could load ${p.version} (${p.codes.join(', ')}); nothing is burned. Where its files are gone: npx backtalk rebuild ${p.version}`,
  },
  nothingToRollBack: {
    code: 'nothing_to_roll_back',
    status: 409,
    retry: 'never',
    message: (p: { stable: string }) =>
      p.stable === '' ? 'Nothing serves yet.' : `${p.stable} has no stable version before it.`,
  },
  stableChanged: {
    code: 'stable_changed',
    status: 409,
    retry: 'later',
    message: (p: { from: string; stable: string }) =>
      `${p.stable} took the place of ${p.from} in this moment. Nothing was rolled back: look, and ask again.`,
  },
  policyUnknown: {
    code: 'policy_unknown',
    status: 404,
    retry: 'never',
    message: (p: { policy: string }) => `This publisher stages no policy "${p.policy}".`,
  },
});
