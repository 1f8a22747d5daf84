// What can go wrong in the trainer itself, and what becomes of the work then.
import { defineErrors } from '@backtalk/kit';

export const trainerErrors = defineErrors('trainer', {
  notLeading: {
    code: 'not_leading',
    status: 503,
    retry: 'later',
    message: () => 'Another trainer leads now; what came in here is given to it.',
  },
  ledgerBehind: {
    code: 'ledger_behind',
    status: 503,
    retry: 'later',
    message: (p: { batch: number }) =>
      `The log knows more than this trainer, which was about to close batch ${p.batch}.`,
  },
  workerBusy: {
    code: 'worker_busy',
    status: 503,
    retry: 'later',
    message: (p: { call: string }) => `The training worker takes another step (${p.call}).`,
  },
  conversationGone: {
    code: 'conversation_gone',
    retry: 'never',
    message: () => 'A conversation is a difference from a turn that the log no longer holds.',
  },
  payloadLate: {
    code: 'payload_late',
    retry: 'later',
    message: () => 'A payload of a young turn is not in the blob store yet; it is taken for lost after ten minutes.',
  },
  planUnreadable: {
    code: 'plan_unreadable',
    retry: 'later',
    message: (p: { digest: string }) =>
      `The plan ${p.digest} of a closed batch cannot be read; restore the blob store.`,
  },
  versionUnknown: {
    code: 'version_unknown',
    retry: 'later',
    message: (p: { version: string }) =>
      `${p.version} is the parent of a closed batch, but the log has no such version.`,
  },
  rendererAway: {
    code: 'renderer_away',
    retry: 'later',
    message: (p: { baseModel: string }) =>
      `No engine that serves ${p.baseModel} renders prompts now; the step waits for one with a loader beside it.`,
  },
  renderFailed: {
    code: 'render_failed',
    retry: 'later',
    message: (p: { reason: string }) => `An engine had a prompt of the step and failed to render it (${p.reason}).`,
  },
  baseChanged: {
    code: 'base_changed',
    retry: 'later',
    message: (p: { version: string; baseModel: string }) =>
      `${p.version} was trained on other weights than the training worker now has under the name ${p.baseModel}; put them back, or start a new policy.`,
  },
  rankChanged: {
    code: 'rank_changed',
    retry: 'stop',
    message: (p: { version: string; name: string; trained: number; configured: number }) =>
      `${p.version} was trained with ${p.name} ${p.trained}, but the recipe's is ${p.configured}; set it back, or start a new policy.`,
  },
  neverTrained: {
    code: 'never_trained',
    retry: 'never',
    message: (p: { version: string }) => `The log knows no version ${p.version} that was trained.`,
  },
  batchGone: {
    code: 'batch_gone',
    retry: 'never',
    message: (p: { version: string; batch: number }) =>
      `The log no longer holds batch ${p.batch}, of which ${p.version} was made; it cannot be made again.`,
  },
  turnsGone: {
    code: 'turns_gone',
    retry: 'never',
    message: (p: { version: string; turns: readonly string[] }) =>
      `${p.version} cannot be made again: the log or its payloads no longer hold ${p.turns.join(', ')}.`,
  },
  notBefore: {
    code: 'not_before',
    retry: 'never',
    message: (p: { from: string; to: string }) =>
      `${p.to} was not made upon ${p.from}, so there is no row of versions from one to the other.`,
  },
  replayRefused: {
    code: 'replay_refused',
    retry: 'never',
    message: (p: { problems: readonly string[] }) => p.problems.join(' '),
  },
  replaySkipped: {
    code: 'replay_skipped',
    retry: 'never',
    message: (p: { version: string; why: string }) =>
      `No version would come of the step of ${p.version}: it is skipped by a guard (${p.why}).`,
  },
  notRejudged: {
    code: 'not_rejudged',
    retry: 'never',
    message: (p: { version: string; turn: string }) =>
      `${p.version} was trained on ${p.turn}, which the judge was not asked about: npx backtalk replay --judge asks it first.`,
  },
  parentSwept: {
    code: 'parent_swept',
    retry: 'never',
    message: (p: { version: string; parent: string }) =>
      `The files of ${p.parent}, upon which ${p.version} was made, were swept: npx backtalk rebuild ${p.parent} makes them again.`,
  },
  resultMissing: {
    code: 'result_missing',
    retry: 'later',
    message: () => 'The training worker ended a step without a result.',
  },
  resultDiffers: {
    code: 'result_differs',
    retry: 'later',
    message: (p: { digest: string }) => `The training worker sent other bytes than ${p.digest} promises.`,
  },
});
