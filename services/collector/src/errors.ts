// What can go wrong in the collector, and what then happens to the fact in hand.

import { defineErrors } from '@backtalk/kit';

export const CollectorErrors = defineErrors('collector', {
  indexUnavailable: {
    code: 'index_unavailable',
    retry: 'later',
    message: () => 'Valkey does not answer; the fact is tried again.',
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
