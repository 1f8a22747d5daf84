// What can go wrong in the collector, and what then happens to the fact in flight.
import { defineErrors } from '@backtalk/kit';

export const collectorErrors = defineErrors('collector', {
  indexUnavailable: {
    code: 'index_unavailable',
    retry: 'later',
    // 503: the fact waits in flight, however long that takes.
    status: 503,
    message: () => 'Valkey does not answer; the fact is tried again.',
  },
  answersBehind: {
    code: 'answers_behind',
    retry: 'later',
    // 503: the request waits in flight until the answers before it are in the index.
    status: 503,
    message: (p: { turn: string }) => `Answers that the log had before ${p.turn} are not in the index yet.`,
  },
  brokerTimeUnknown: {
    code: 'broker_time_unknown',
    retry: 'later',
    message: () => 'The broker does not tell its time, so that no session is closed for its silence.',
  },
  turnMissing: {
    code: 'turn_missing',
    retry: 'later',
    message: (p: { turn: string }) => `Turn ${p.turn} is not in the log yet.`,
  },
  conversationUnreadable: {
    code: 'conversation_unreadable',
    retry: 'never',
    message: (p: { turn: string }) => `The messages of turn ${p.turn} cannot be decoded.`,
  },
});
