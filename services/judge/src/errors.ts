// Everything that can go wrong in the judge, what is done about it, and in which words it is said.
import { defineErrors } from '@backtalk/kit';

export const judgeErrors = defineErrors('judge', {
  /** The vote is not to blame: it waits, and no try is counted. */
  engineAway: {
    code: 'judge_engine_away',
    status: 503,
    retry: 'later',
    message: () => 'No engine of the judge pool can be reached: votes wait until there is one.',
  },
  /** No vote is to blame where all fail: they wait until one is cast. */
  enginesFailing: {
    code: 'judge_engines_failing',
    status: 503,
    retry: 'later',
    message: (p: { turns: number; reason: string }) =>
      `Every vote of the last ${p.turns} turns failed, this one with ${p.reason}: votes wait until one is cast.`,
  },
  /** The vote waits until the engines may be asked again, and so do all others. */
  engineLimited: {
    code: 'judge_engine_limited',
    status: 503,
    retry: 'later',
    message: (p: { waitMs: number }) => `Every engine of the judge pool asks to be left alone for ${p.waitMs} ms.`,
  },
  /** No vote is to blame for a key: all wait until it is right. */
  keyRefused: {
    code: 'judge_key_refused',
    status: 503,
    retry: 'later',
    message: () => 'The judge pool refuses the key that it is given, or its account has nothing left: votes wait.',
  },
  /** The vote waits for another engine, unless it was the second one. */
  engineLost: {
    code: 'judge_engine_lost',
    status: 503,
    retry: 'later',
    message: (p: { engine: string }) => `The connection of ${p.engine} was lost while it had a vote.`,
  },
  voteTimedOut: {
    code: 'vote_timed_out',
    retry: 'later',
    message: (p: { afterMs: number }) => `A vote was not cast within ${p.afterMs} ms.`,
  },
  voteFailed: {
    code: 'vote_failed',
    retry: 'later',
    message: (p: { reason: string }) => `A vote could not be cast: the engine answered with ${p.reason}.`,
  },
  votesLeft: {
    code: 'votes_left',
    retry: 'later',
    message: () => 'The judge stopped before all votes were cast: another judge goes on.',
  },
  /** What the queue keeps as the reason is the message. */
  jobFailed: {
    code: 'job_failed',
    retry: 'later',
    message: (p: { reason: string }) => p.reason,
  },
  judgementMissing: {
    code: 'judgement_missing',
    retry: 'later',
    message: () => 'A judgement could not be made, or is not in the log any more: it is made again.',
  },
  /** Its facts may still be in a gateway's spool, so it is tried again before it is given up. */
  turnUnreadable: {
    code: 'turn_unreadable',
    retry: 'later',
    message: (p: { missing: string }) => `A continued turn cannot be judged: its ${p.missing} is not in the log.`,
  },
  sessionNotJudged: {
    code: 'session_not_judged',
    retry: 'later',
    message: () => 'A closed session has turns that are not judged yet.',
  },
  revisionLost: {
    code: 'revision_lost',
    retry: 'later',
    message: () => 'Another revision of the same judgement was stored first, again and again.',
  },
  labelledSetBroken: {
    code: 'labelled_set_broken',
    retry: 'stop',
    message: (p: { file: string; reason: string }) => `The judge's file ${p.file} cannot be used: ${p.reason}.`,
  },
});
